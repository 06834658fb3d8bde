"""What a stored value must look like to be the one that is asked for: names, types and shapes of its tensors.

A right digest does not say so: it has no secret, and anybody may have written the file. Left out: what an objective
remembers, and rows that another operation makes, which only these know; and numbers, of which any could have been
trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TypeAlias

import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.graph import Handle
from fedsim.learning.operations.compensate import Compensate
from fedsim.learning.operations.extract import FEATURES, LABELS, SAMPLES, SEMANTICS, Extract
from fedsim.learning.operations.keep import Keep
from fedsim.models.layers import Shape
from fedsim.models.table import LayerTable, ModelTable
from fedsim.models.user_table import UserTable

__all__ = ["Expected"]

MOST_AXES_SHOWN = 8

Form: TypeAlias = tuple[torch.dtype, Shape]
"""Of a tensor."""


class Expected:
    """Knows the parts of one model, and the rows of semantics that it makes of a data set."""

    def __init__(
        self, table: ModelTable, dataset: FederatedDataset, dtype: torch.dtype, *, flat_features: bool
    ) -> None:
        assert isinstance(table, LayerTable | UserTable), "no other model can be trained"
        self._shapes = {part: table.state_shapes(part) for part in table.parts}
        self._table, self._dataset, self._dtype, self._flat_features = table, dataset, dtype, flat_features

    def check(self, found: TensorDict, handle: Handle) -> None:
        """Raise `ValueError` unless *found* can be the output that *handle* stands for."""
        if handle.output in self._shapes:
            _check(found, {name: (self._dtype, shape) for name, shape in self._shapes[handle.output].items()})
        elif handle.output == SEMANTICS and _known(handle):
            self._check_rows(found, handle)

    def _check_rows(self, found: TensorDict, handle: Handle) -> None:
        rows, classes = self._rows(handle), self._dataset.classes
        expected: dict[str, Form] = {
            FEATURES: (self._dtype, (rows, *self._feature_shape)),
            LABELS: (self._dtype if classes is None else torch.int64, (rows,)),
        }
        if _with_samples(handle):
            assert self._dataset.sample_shape is not None
            tokens = self._dataset.vocabulary is not None
            expected[SAMPLES] = (torch.int64 if tokens else self._dtype, (rows, *self._dataset.sample_shape))
        _check(found, expected)
        if classes is not None and bool(((found[LABELS] < 0) | (found[LABELS] >= classes)).any()):
            raise ValueError(f"a label is not from 0 to {classes - 1}")

    @property
    def _feature_shape(self) -> Shape:
        shape = self._table.feature_shape()
        assert shape is not None, "such a model makes no semantics"
        return (prod(shape),) if self._flat_features else shape

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


def _with_samples(handle: Handle) -> bool:
    """Whether the raw samples stand beside the rows."""
    while not handle.computed:
        match handle.node.operation:
            case Extract(with_samples=with_samples):
                return with_samples
            case Keep():
                handle = handle.node.sources.each("rows")[0]
            case _:
                handle = handle.node.sources.one("remembered")
    return SAMPLES in handle.value


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
