"""What every executor offers: the arithmetic of the graph's operations, and how it groups like nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from fedsim.learning.graph import Handle, Node
from fedsim.learning.operations.operation import Value

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
    lookahead: int = 0
    """How many chunks may have begun before the one that is waited for is finished."""

    @classmethod
    def chunks(cls, nodes: Sequence[Node]) -> Iterable[Sequence[Node]]:
        """Group newly planned nodes into chunks, in an order in which they can be computed.

        *nodes* come inputs first. The answer may depend on the nodes alone: never on time, memory, workers or the
        store. A node that folds is a chunk of its own, or the last one of a chunk that makes all of its numbered
        inputs. Here every node is a chunk of its own.
        """
        return ([node] for node in nodes)

    def begin(self, chunk: Sequence[Node]) -> None:  # noqa: B027 - most executors have nothing to begin
        """Get a chunk going whose nodes' inputs have their values; `compute` will ask for it, in the planned order."""

    @abstractmethod
    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Value]]:
        """The outputs of each node of a chunk, at least those that are held; the nodes' inputs have their values."""

    @abstractmethod
    def fold(self, node: Node) -> Fold:
        """Begin a node that folds; its inputs that are not numbered have their values."""

    @abstractmethod
    def dump(self, value: Value) -> bytes:
        """A part as safetensors bytes."""

    @abstractmethod
    def load(self, content: bytes, handle: Handle) -> Value:
        """The part that *handle* stands for, from safetensors bytes. Raises `ValueError` when it cannot be that one."""

    def forget(self) -> None:  # noqa: B027 - most executors have nothing to forget
        """Drop every chunk that has begun: nobody will ask for it."""

    def close(self) -> None:  # noqa: B027 - most executors have nothing to close
        """Let go of everything outside of this object's own memory. It can still be used afterwards."""
