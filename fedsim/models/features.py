"""A model's features: what its last layer with parameters takes."""

from __future__ import annotations

from fedsim.errors import Misfit
from fedsim.models.table import LayerTable, ModelTable

__all__ = ["check_that_features_are_learned", "last_layer"]


def last_layer(table: LayerTable) -> tuple[str, str]:
    """The part and the name of the last layer that has parameters.

    >>> from fedsim.models.small_cnn import SmallCnn
    >>> last_layer(SmallCnn().table((1, 28, 28), 62))
    ('classifier', 'fc2')
    """
    return _layers_with_parameters(table)[-1]


def check_that_features_are_learned(table: ModelTable) -> None:
    """Raise `UserError` where no weight changes the features, or where nobody can look at them."""
    table.check_that_parts_run_alone()
    if isinstance(table, LayerTable) and len(_layers_with_parameters(table)) < 2:
        raise Misfit(
            "features are compared, and the model's only layer takes the samples themselves; choose a model with more "
            "layers, such as mlp"
        )


def _layers_with_parameters(table: LayerTable) -> list[tuple[str, str]]:
    return [(part, layer.name) for part, layers in table.layers.items() for layer in layers if layer.parameter_shapes]
