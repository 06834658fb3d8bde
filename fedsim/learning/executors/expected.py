"""What a stored value must look like to be the one that is asked for: names, types and shapes of its tensors.

A right digest does not say so: it has no secret, and anybody may have written the file. Left out: what an objective
remembers, and rows that another operation makes, which only these know; and numbers, of which any could have been
trained. What an operation makes that neither names a table nor adds up models may be of any table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod
from typing import TypeAlias

import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.graph import Handle
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.compensate import Compensate
from fedsim.learning.operations.extract import FEATURES, LABELS, SAMPLES, SEMANTICS, Extract
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.keep import Keep
from fedsim.learning.operations.partial_sum import TERM, PartialSum
from fedsim.learning.operations.train import Train
from fedsim.models.layers import Shape
from fedsim.models.segmented import TrainableTable
from fedsim.models.table import ModelTable

__all__ = ["Expected"]

MOST_AXES_SHOWN = 8

Form: TypeAlias = tuple[torch.dtype, Shape]
"""Of a tensor."""


class Expected:
    """Knows the parts of some models, and the rows of semantics that they make of a data set."""

    def __init__(
        self, tables: Mapping[str, ModelTable], dataset: FederatedDataset, dtype: torch.dtype, *, flat: Collection[str]
    ) -> None:
        """The *tables* are by digest; *flat* has the digests of those whose trainer makes vectors of features."""
        self._shapes: dict[str, dict[str, Mapping[str, Shape]]] = {}
        for digest, table in tables.items():
            assert isinstance(table, TrainableTable), "no other model can be trained"
            self._shapes[digest] = {part: table.state_shapes(part) for part in table.parts}
        self._tables, self._dataset, self._dtype, self._flat = tables, dataset, dtype, flat

    def check(self, found: TensorDict, handle: Handle) -> None:
        """Raise `ValueError` unless *found* can be the output that *handle* stands for."""
        if handle.output == SEMANTICS:
            if _known(handle):
                self._check_rows(found, handle)
            return
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

    def _check_rows(self, found: TensorDict, handle: Handle) -> None:
        rows, classes, origin = self._rows(handle), self._dataset.classes, _origin(handle)
        expected: dict[str, Form] = {
            FEATURES: (self._dtype, (rows, *self._feature_shape(origin))),
            LABELS: (self._dtype if classes is None else torch.int64, (rows,)),
        }
        if origin.with_samples if isinstance(origin, Extract) else SAMPLES in origin:
            assert self._dataset.sample_shape is not None
            tokens = self._dataset.vocabulary is not None
            expected[SAMPLES] = (torch.int64 if tokens else self._dtype, (rows, *self._dataset.sample_shape))
        _check(found, expected)
        if classes is not None and bool(((found[LABELS] < 0) | (found[LABELS] >= classes)).any()):
            raise ValueError(f"a label is not from 0 to {classes - 1}")

    def _feature_shape(self, origin: Extract | TensorDict) -> Shape:
        if not isinstance(origin, Extract):
            return tuple(origin[FEATURES].shape[1:])
        shape = self._tables[origin.model].feature_shape()
        assert shape is not None, "such a model makes no semantics"
        return (prod(shape),) if origin.model in self._flat else shape

    def _rows(self, handle: Handle) -> int:
        while not handle.computed:
            match handle.node.operation:
                case Keep(rows=rows):
                    return rows
                case Extract(seen=seen) if "remembered" not in handle.node.sources:
                    return seen.samples
            handle = handle.node.sources.one("remembered")
        return len(handle.value[LABELS])


def _known(handle: Handle) -> bool:
    """Whether nothing but the operations on semantics has made the rows, as far back as has no value yet."""
    while isinstance(handle.node.operation, Extract | Keep | Compensate):
        sources = handle.node.sources
        if handle.computed or not ("rows" in sources or "remembered" in sources):
            return True
        handle = sources.each("rows")[0] if "rows" in sources else sources.one("remembered")
    return False


def _origin(handle: Handle) -> Extract | TensorDict:
    """What made the rows that others were made of, or such rows themselves."""
    while not handle.computed:
        match handle.node.operation:
            case Extract() as operation:
                return operation
            case Keep():
                handle = handle.node.sources.each("rows")[0]
            case _:
                handle = handle.node.sources.one("remembered")
    rows: TensorDict = handle.value
    return rows


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
    kind = str(dtype).removeprefix("torch.")
    return f"{kind} {shape}" if len(shape) <= MOST_AXES_SHOWN else f"{kind} of {len(shape)} axes"
