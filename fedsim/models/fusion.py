"""A model with a fusion layer: FedFusion's, made of any model that has an extractor."""

from __future__ import annotations

from dataclasses import replace

from fedsim.models.layers import Flatten, Fusion, Operator
from fedsim.models.table import EXTRACTOR, LayerTable, ModelTable

__all__ = ["GATES", "fused", "share_before_fusion"]

LAYER = "fusion"
GATES = (f"{EXTRACTOR}.{LAYER}.gate",)
"""The full names, ``part.layer.gate``, of the gates that a fused model may have."""


def fused(table: LayerTable, operator: Operator) -> LayerTable:
    """*table* with a fusion layer after the last layer of its extractor that gives channels and a space.

    So it stands before flattening and before global pooling, and after the pooling of the last convolution. Where all
    of the extractor's layers give vectors, as in a multilayer perceptron, it stands after the last of them, and each
    number is a channel. Raises `ValueError` when the model has no extractor.

    >>> from fedsim.models.small_cnn import SmallCnn
    >>> model = fused(SmallCnn().table((1, 28, 28), 62), "single")
    >>> [layer.name for layer in model.extractor][-5:], model.parameters()
    (['pool2', 'fusion', 'flatten', 'fc1', 'relu3'], 222079)
    """
    if not table.extractor:
        raise ValueError("a model without an extractor has no features to fuse")
    shapes = [table.activation_shapes[layer.name] for layer in table.extractor]
    places = [place for place, shape in enumerate(shapes) if len(shape) > 1] or [len(shapes) - 1]
    before, behind = table.extractor[: places[-1] + 1], table.extractor[places[-1] + 1 :]
    fusion = Fusion(LAYER, channels=shapes[places[-1]][0], operator=operator)
    return replace(table, extractor=(*before, fusion, *behind))


def share_before_fusion(table: ModelTable) -> float:
    """The share of a forward pass through a fused model that stands before its fusion layer; 0 without one.

    >>> from fedsim.models.small_cnn import SmallCnn
    >>> round(share_before_fusion(fused(SmallCnn().table((1, 28, 28), 62), "single")), 3)  # the convolutions
    0.931
    """
    if not isinstance(table, LayerTable) or LAYER not in (names := [layer.name for layer in table.extractor]):
        return 0.0
    before = replace(table, extractor=table.extractor[: names.index(LAYER)], classifier=(Flatten("flat"),))
    return before.forward_macs() / table.forward_macs()
