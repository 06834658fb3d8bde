"""A stand-in for CUDA graphs: it does recorded operations again, on the same places in memory.

Whatever else a training did on its way, it does not do again: a number that Python carried from one operation to the
next stays what it was, as in a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Made = TypeVar("Made")


class Operation(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    made: dict[int, torch.Tensor]
    """What came out in memory of its own, by place among all that came out."""


class Tape(TorchDispatchMode):
    """Records the operations within."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        made = func(*args, **options)
        self.check(func, [*tensors((args, options, made))])
        taken = {tensor.untyped_storage()._cdata for tensor in tensors((args, options))}
        came = enumerate(tensors(made))
        own = {at: tensor for at, tensor in came if tensor.untyped_storage()._cdata not in taken}
        self.operations.append(Operation(func, args, options, own))
        return made

    def check(self, function: Any, touched: list[torch.Tensor]) -> None:
        """Raise `RuntimeError` if *function*, of and to these tensors, is nothing that a graph can do again."""
        if function is torch.ops.aten.lift_fresh.default:
            raise RuntimeError("numbers of the host are made into a tensor")

    def play(self) -> None:
        """Do everything again; memory that nobody fills holds no numbers."""
        for operation in self.operations:
            for tensor in operation.made.values():
                tensor.fill_(torch.nan if tensor.is_floating_point() else -1)
        for operation in self.operations:
            made = list(tensors(operation.function(*operation.arguments, **operation.options)))
            if not operation.function.__name__.startswith(("empty", "new_empty")):
                for at, place in operation.made.items():
                    place.copy_(made[at])


class TapeRecorder:
    """Records on tapes."""

    tape: type[Tape] = Tape
    recorded = 0
    played = 0

    def record(self, work: Callable[[], Made]) -> tuple[Made, Callable[[], None]]:
        work()
        with self.tape() as tape:
            made = work()
        type(self).recorded += 1

        def play() -> None:
            type(self).played += 1
            tape.play()

        return made, play


def tensors(tree: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))
