"""What every executor offers: the arithmetic of the graph's operations, and how it groups like nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.graph import Node, Value
from fedsim.models.table import ModelTable

__all__ = ["Executor", "Fold"]


class Fold(ABC):
    """An operation that takes its numbered inputs one at a time, in order, and keeps none of them."""

    @abstractmethod
    def add(self, value: Mapping[str, Value]) -> None:
        """Take the next numbered input: its parts by name."""

    @abstractmethod
    def result(self) -> dict[str, Value]:
        """The outputs, after the last input."""


class Executor(ABC):
    """Computes nodes. What it returns is new memory: no output shares storage with an input."""

    torch_devices: ClassVar[tuple[str, ...]]
    """Where it can compute: "cpu", "cuda"."""
    family: str
    """The numeric family of everything it computes."""

    @classmethod
    @abstractmethod
    def numeric_family(cls, torch_device: str) -> str:
        """The numeric family, known before anything is computed."""

    @abstractmethod
    def __init__(self, table: ModelTable, dataset: FederatedDataset, torch_device: str) -> None:
        """Get ready to train the model of *table* on *dataset*."""

    def chunks(self, nodes: Sequence[Node]) -> Iterable[Sequence[Node]]:
        """Group newly planned nodes into chunks, in an order in which they can be computed.

        *nodes* come inputs first. The answer may depend on the nodes alone: never on time, memory, workers or the
        store. A folding node is a chunk of its own. Here every node is.
        """
        return ([node] for node in nodes)

    @abstractmethod
    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Value]]:
        """The outputs of each node of a chunk; the nodes' inputs have their values."""

    @abstractmethod
    def fold(self, node: Node) -> Fold:
        """Begin a node that folds; its inputs that are not numbered have their values."""

    @abstractmethod
    def dump(self, value: Value) -> bytes:
        """A part as safetensors bytes."""

    @abstractmethod
    def load(self, path: Path) -> Value:
        """A part from a safetensors file."""
