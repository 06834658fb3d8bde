"""A model with another classifier: gated units that know whose sample it is, behind the extractor of a given model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod

from fedsim.errors import Misfit
from fedsim.models.layers import Flatten, Gated, Layer, Linear
from fedsim.models.table import LayerTable, ModelTable

__all__ = ["gated"]


def gated(table: ModelTable, *, layers: int, units: int, clients: int) -> LayerTable:
    """The extractor of *table*, so many *layers* of gated units for *clients* clients, and a layer of scores.

    Raises `Misfit` when the model is not one of layers, or has no extractor.

    >>> from fedsim.models.small_cnn import SmallCnn
    >>> made = gated(SmallCnn().table((1, 28, 28), 62), layers=1, units=256, clients=10)
    >>> [layer.name for layer in made.classifier], made.parameters("classifier")  # 2 * 256 * (128 + 10) and 257 * 62
    (['gated1', 'scores'], 86590)
    """
    if not isinstance(table, LayerTable) or not table.extractor:
        problem = "gated units stand behind the extractor of a model of layers, and this model has none"
        raise Misfit(f"{problem}; choose a model with an extractor, such as small_cnn")
    flat: tuple[Layer, ...] = () if len(table.feature_shape()) == 1 else (Flatten("flat"),)
    widths = (prod(table.feature_shape()), *[units] * layers)
    between = tuple(
        Gated(f"gated{number}", inputs=inputs, outputs=width, clients=clients)
        for number, (inputs, width) in enumerate(pairwise(widths), start=1)
    )
    scores = Linear("scores", inputs=units, outputs=table.outputs)
    return replace(table, classifier=(*flat, *between, scores))
