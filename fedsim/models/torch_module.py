"""From a table to PyTorch: the module, and the tensors that its state starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from fedsim.errors import UserError
from fedsim.models.features import last_layer
from fedsim.models.initialisation import start
from fedsim.models.parted import PartedModule
from fedsim.models.segmented import SegmentedTable
from fedsim.models.table import CLASSIFIER, EXTRACTOR, LayerTable, ModelTable
from fedsim.models.torch_layers import FusionModule, GatedUnits, sequence

__all__ = ["LayerModule", "Module", "build", "initial_parameters", "trained"]

Module: TypeAlias = nn.Module
"""What a trained model is to those who only call it."""


class LayerModule(PartedModule):
    """A model whose parts can be called alone: ``parts["classifier"](parts["extractor"](x))`` is ``forward(x)``."""

    parts: nn.ModuleDict

    def __init__(self, table: LayerTable) -> None:
        """Build every part of *table*, with all parameters and running statistics zero."""
        super().__init__()
        self._table = table
        self._states: dict[str, dict[str, torch.Tensor]] = {}
        self.parts = nn.ModuleDict({part: sequence(layers) for part, layers in table.layers.items()})
        for layer in list(self.modules()):
            for name, parameter in list(layer.named_parameters(recurse=False)):
                setattr(layer, name, nn.Parameter(torch.zeros(parameter.shape)))
            for name, buffer in list(layer.named_buffers(recurse=False)):
                if buffer.is_meta:
                    setattr(layer, name, torch.zeros(buffer.shape))

    def part_state(self, part: str) -> dict[str, torch.Tensor]:
        """The live parameters and running statistics of *part*, in the order of the table's ``state_shapes``."""
        if part not in self._states:
            self._states[part] = self.parts[part].state_dict(keep_vars=True)
        return dict(self._states[part])

    def layers_have_changed(self) -> None:
        """Say so after other layers, or other tensors, have been put in the place of some."""
        self._states.clear()

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        self.layers_have_changed()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    @property
    def last(self) -> nn.Module:
        """The last layer with parameters."""
        return self.parts.get_submodule(".".join(last_layer(self._table)))

    def fuse(self, other: LayerModule, x: torch.Tensor) -> None:
        """In its next forward pass, of *x*, fuse its own features with those of *other*, a model of the same table."""
        with torch.no_grad():
            for layer, same in zip(self.parts[EXTRACTOR].children(), other.parts[EXTRACTOR].children(), strict=True):
                if isinstance(layer, FusionModule):
                    layer.other = x
                    return
                x = same(x)
        raise ValueError("the model has no fusion layer")

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """What the extractor makes of a batch of samples; the samples themselves where there is none."""
        made: torch.Tensor = self.parts[EXTRACTOR](x) if EXTRACTOR in self.parts else x
        return made

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """The scores of a batch of features."""
        scores: torch.Tensor = self.parts[CLASSIFIER](features)
        return scores

    def tell_client(self, client: int | None) -> None:
        """Gated units ask for it."""
        for units in self.modules():
            if isinstance(units, GatedUnits):
                units.client = client

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores, (batch, outputs), of a batch of samples, (batch, then the table's input shape)."""
        for part in self.parts.values():
            x = part(x)
        return x


def build(table: ModelTable) -> PartedModule:
    """The module of *table*: float32, on the CPU, all state zero until `initial_parameters` are loaded.

    Names and shapes of ``module.part_state(part)`` are those of ``table.state_shapes(part)``, in order. No random
    number is drawn. Raises `UserError` when the table declares sizes only.
    """
    _check_trainable(table)
    if not isinstance(table, LayerTable):
        from fedsim.models.user_torch import build_user_module

        return build_user_module(table)
    return LayerModule(table)


def trained(table: ModelTable, weights: Mapping[str, Path]) -> Module:
    """The module of *table* with the *weights* of each part, a safetensors file, in ``eval()`` mode on the CPU.

    Of a user's own module it is that module itself. Raises `UserError` as `build` does, and `ValueError` when the
    weights are those of another model.
    """
    from fedsim.models.user_torch import UserModule

    if weights.keys() != set(table.parts):
        raise ValueError(f"the model has the parts {sorted(table.parts)}, not {sorted(weights)}")
    found = {part: load_file(path) for part, path in weights.items()}
    if isinstance(table, SegmentedTable):
        found = _joined(table, found)
        table = table.whole
    module = build(table)
    for part, state in found.items():
        module.load(part, state)
    module.eval()
    return module.user if isinstance(module, UserModule) else module


def _joined(table: SegmentedTable, found: Mapping[str, dict[str, torch.Tensor]]) -> dict[str, dict[str, torch.Tensor]]:
    """Segments, *found* in a store, as the whole model's parts."""
    for name, tensors in found.items():
        if {own: tuple(tensor.shape) for own, tensor in tensors.items()} != table.state_shapes(name):
            raise ValueError(f"layers {name} of the model have other shapes")
    return table.joined(found)


def initial_parameters(table: ModelTable, rng: np.random.Generator) -> dict[str, dict[str, torch.Tensor]]:
    """Part -> name -> float32 tensor to start training from, running statistics included.

    Layers start by the table's ``initialisation`` (see `fedsim.models.initialisation`). Raises `UserError` when the
    table declares sizes only.
    """
    _check_trainable(table)
    if not isinstance(table, LayerTable):
        from fedsim.models.user_torch import initial_user_state

        return initial_user_state(table, rng)
    return {
        part: {
            f"{path}.{kind}": torch.from_numpy(start(table.initialisation, leaf, kind, rng))
            for layer in layers
            for path, leaf in layer.leaves()
            for kind in leaf.state_shapes
        }
        for part, layers in table.layers.items()
    }


def _check_trainable(table: ModelTable) -> None:
    if not table.trainable:
        raise UserError(
            "the model declares sizes only and cannot be trained; choose a model with layers, such as small_cnn, "
            "or run without training"
        )
