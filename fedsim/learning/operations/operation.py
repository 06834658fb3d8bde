"""What an operation is, and how its inputs are named.

Torch-free, as all operations are until they are applied: protocols name them without anything being computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

__all__ = ["Inputs", "Operation", "Slot", "Value"]

Value = Any  # tensors by name, or metrics or a number: the graph never opens it

T = TypeVar("T")


class Slot(NamedTuple):
    """Where an input goes."""

    role: str
    """What it is to the operation: "model", "base", "rows"."""
    number: int = 0
    """Which one of those in this role."""
    part: str = ""
    """Which part of the model; empty for what has no parts."""

    @property
    def text(self) -> str:
        """For keys.

        >>> Slot("model", part="classifier").text, Slot("rows", 2).text
        ('model/0/classifier', 'rows/2/')
        """
        return f"{self.role}/{self.number}/{self.part}"


class Inputs(Generic[T]):
    """What came in, by role: models as mappings part -> value, and single values."""

    def __init__(self, slots: Mapping[Slot, T]) -> None:
        self._slots = slots

    def model(self, role: str, number: int = 0) -> dict[str, T]:
        """The parts in one place; empty when nothing is there."""
        return {slot.part: value for slot, value in self._slots.items() if slot[:2] == (role, number)}

    def models(self, role: str) -> list[dict[str, T]]:
        """The models in a role, in their order."""
        found: dict[int, dict[str, T]] = {}
        for slot, value in self._slots.items():
            if slot.role == role:
                found.setdefault(slot.number, {})[slot.part] = value
        return [found[number] for number in sorted(found)]

    def each(self, role: str) -> list[T]:
        """The values in a role whose inputs have one part each, in their order."""
        return [value for model in self.models(role) for value in model.values()]

    def one(self, role: str) -> T:
        """The only value in a role."""
        (value,) = self.each(role)
        return value

    def __contains__(self, role: str) -> bool:
        return any(slot.role == role for slot in self._slots)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)


@dataclass(frozen=True)
class Operation:
    """A kind of node. Its fields are in the key, with ``name`` and ``version``: raise that when its numbers change."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    scalars: ClassVar[frozenset[str]] = frozenset()
    """Names of outputs that are numbers, or metrics (JSON): they are kept for ever; tensors, while they are needed."""
    folds: ClassVar[bool] = False
    """It takes its inputs in the role "term" one at a time, as soon as each is there."""

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """The outputs by name: tensors by name for each, and a number or metrics for those in ``scalars``.

        Inputs are not changed. *generator* is at the beginning of the node's random stream; None without one.
        """
        raise NotImplementedError(f"operation {self.name!r} has no arithmetic of its own")
