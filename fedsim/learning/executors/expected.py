"""What a stored value must look like to be the one that is asked for: names, types and shapes of its tensors.

A right digest does not say so: it has no secret, and anybody may have written the file. Left out: what an objective
remembers, and rows of semantics, which are no part of a model; and numbers, of which any could have been trained. What
an operation makes that neither names a table nor adds up models may be of any table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import torch

from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.graph import Handle
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.partial_sum import TERM, PartialSum
from fedsim.learning.operations.train import Train
from fedsim.models.layers import Shape
from fedsim.models.segmented import TrainableTable
from fedsim.models.table import ModelTable

__all__ = ["Expected"]


Form: TypeAlias = tuple[torch.dtype, Shape]
"""Of a tensor."""


class Expected:
    """Knows the parts of some models."""

    def __init__(self, tables: Mapping[str, ModelTable], dtype: torch.dtype) -> None:
        """The *tables* are by digest."""
        self._shapes: dict[str, dict[str, Mapping[str, Shape]]] = {}
        for digest, table in tables.items():
            assert isinstance(table, TrainableTable), "no other model can be trained"
            self._shapes[digest] = {part: table.state_shapes(part) for part in table.parts}
        self._dtype = dtype

    def check(self, found: TensorDict, handle: Handle) -> None:
        """Raise `ValueError` unless *found* can be the output that *handle* stands for."""
        if (forms := self._forms(handle)) and _forms_of(found) not in forms:
            _check(found, forms[0])

    def _forms(self, handle: Handle) -> list[dict[str, Form]]:
        """What a part of a model may look like: a sum as what it begins with."""
        shapes = {digest: parts[handle.output] for digest, parts in self._shapes.items() if handle.output in parts}
        while shapes and isinstance(handle.node.operation, Add | PartialSum):
            sources = handle.node.sources
            begins = sources.model("base") or sources.model(TERM)
            handle = begins[handle.output]
            if handle.computed:
                return [_forms_of(handle.value)]
        if not any(handle.output in parts for parts in self._shapes.values()):
            return []  # no part of a model, but what is added up beside it
        if shapes and isinstance(operation := handle.node.operation, Init | Train):
            shapes = {operation.model: shapes[operation.model]}
        return [{name: (self._dtype, shape) for name, shape in part.items()} for part in shapes.values()]


def _forms_of(value: TensorDict) -> dict[str, Form]:
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in value.items()}


def _check(found: TensorDict, expected: Mapping[str, Form]) -> None:
    if len(found) != len(expected):
        raise ValueError(f"it has {len(found)} tensors, and {len(expected)} are needed")
    for name, form in expected.items():
        if name not in found:
            raise ValueError(f"it has no tensor {name!r}")
        if (is_there := (found[name].dtype, tuple(found[name].shape))) != form:
            raise ValueError(f"{name!r} is {_told(*is_there)}, and {_told(*form)} is needed")


def _told(dtype: torch.dtype, shape: Shape) -> str:
    return f"{str(dtype).removeprefix('torch.')} {shape}"
