"""Whether a model treats each sample by itself: then steps on parts of a mini-batch add up to a step on all of it."""

from __future__ import annotations

from fedsim.models.table import LayerTable, ModelTable

__all__ = ["why_not_alone"]


def why_not_alone(table: ModelTable) -> str | None:
    """Why a model's gradient on a mini-batch may not be the mean of its samples' gradients, as a clause; None if it is.

    >>> from fedsim.models.resnet import ResNet
    >>> why_not_alone(ResNet(depth=20).table((3, 32, 32), 10))
    'what layer bn1 (batch_norm2d(channels=16)) makes of a sample depends on more than the sample'
    """
    if not table.trainable:
        return None
    if not isinstance(table, LayerTable):
        return "fedsim cannot tell whether a module of the user's own treats each sample by itself"
    layers = (leaf for part in table.layers.values() for layer in part for leaf in layer.leaves())
    found = next(((name, layer) for name, layer in layers if not layer.alone), None)
    if found is None:
        return None
    return f"what layer {found[0]} ({found[1].signature}) makes of a sample depends on more than the sample"
