"""How a worker does a job: with values from shared memory, and with what it makes put where its master wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fedsim.learning.executors.packed import Packed, packed, unpacked
from fedsim.learning.executors.shared_tensors import BlockAddress, SharedTensors
from fedsim.learning.executors.summing import changed, write_change
from fedsim.learning.executors.trainer import TensorDict, Trainer
from fedsim.learning.executors.worker_pool import Job, ScoreJob, TrainJob, outputs_of

__all__ = ["done"]


def done(
    job: Job,
    given: Sequence[BlockAddress | Packed],
    places: Sequence[Mapping[str, BlockAddress]],
    trainer: Trainer,
    shared: SharedTensors,
) -> Any:
    """The result of *job*, with a `BlockAddress` or a `Packed` for each output.

    *given* are its values; *places* say where to put outputs, for each training and then for each sum.
    """
    values = [shared.tensors(value) if isinstance(value, BlockAddress) else unpacked(value) for value in given]
    job = replace(job, values=values)
    if isinstance(job, ScoreJob):
        return job.run(trainer)
    hands = _Hands(job, places, shared)
    made = job.run(trainer, hands.deliver)  # it may be more than anybody wants
    return [
        {name: hands.answer(number, name, some[name]) for name in names}
        for number, (some, names) in enumerate(zip(made, outputs_of(job), strict=True))
    ]


class _Hands:
    """Each output passes through them once."""

    def __init__(self, job: Job, places: Sequence[Mapping[str, BlockAddress]], shared: SharedTensors) -> None:
        self._values, self._changes = job.values, job.changes if isinstance(job, TrainJob) else {}
        self._places, self._shared = places, shared
        self._passed: dict[tuple[int, str], BlockAddress | None] = {}

    def deliver(self, number: int, name: str, value: TensorDict) -> TensorDict:
        """Put an output into its block, if it has one; returns where it lies then."""
        if (number, name) in self._passed:
            return value
        address = self._places[number].get(name)
        if address is not None and not self._shared.fits(address.part, value):
            address = None
        self._passed[number, name] = address
        change = self._changes.get((number, name))
        if change is None:
            if address is None:
                return value
            self._shared.fill(address, value)
            return self._shared.tensors(address)
        base = None if change.base is None else self._values[change.base]
        if address is None:
            return changed(value, base, change.weight)
        block = self._shared.tensors(address)
        for tensor_name, tensor in value.items():
            write_change(block[tensor_name], tensor, None if base is None else base[tensor_name], change.weight)
        return block

    def answer(self, number: int, name: str, value: TensorDict) -> BlockAddress | Packed:
        """What the master is told of an output that the trainer has handed back."""
        value = self.deliver(number, name, value)
        return self._passed[number, name] or packed(value)
