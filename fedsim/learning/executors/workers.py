"""Workers: processes that do jobs side by side, with the same results as one process that does them all.

`Schedule` says who does what next; each worker has one job in hand and at most one waiting. Parts of models lie in
memory that all of them share: what one job makes and another one takes is copied by nobody in between.

Does not restart a worker that died: its jobs fail, and with them all that were begun.
"""

from __future__ import annotations

import pickle
import signal
import sys
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

import torch

from fedsim.errors import RunFailedError, UserError
from fedsim.learning.executors.packed import Packed, packed, unpacked
from fedsim.learning.executors.schedule import Schedule
from fedsim.learning.executors.shared_tensors import Block, BlockAddress, SharedTensors
from fedsim.learning.executors.tickets import Apart, Ticket
from fedsim.learning.executors.trainer import TensorDict, Trainer
from fedsim.learning.executors.worker import Answer, Order, Worker, uninterrupted
from fedsim.learning.executors.worker_pool import Job, ScoreJob, TrainJob, WorkerPool, outputs_of
from fedsim.learning.rules.changes import PARTIAL_SUM
from fedsim.models.layers import Shape
from fedsim.models.segmented import TrainableTable
from fedsim.models.table import ModelTable

__all__ = ["Workers"]

_RESERVE = 2 * PARTIAL_SUM + 1
"""Blocks of each part that are for jobs: enough for eight bases, eight models and a sum."""
_KEPT_PER_WORKER = 6
_MOST_KEPT = 256
"""Blocks of each part that may stay with the models in them: for each worker, and for all clients together."""


class Workers(WorkerPool):
    """Processes that are forked from this one when the first job comes.

    In each, *hire* makes the trainer of a table's digest. Before they are forked, *prepare* is called here: what it
    makes, all of them have. *tables* and *dtype* say what parts look like, which are called ``digest/part`` in shared
    memory; as many *clients* may keep parts there. Raises `UserError` where processes cannot be forked.
    """

    def __init__(
        self,
        hire: Callable[[str], Trainer],
        workers: int,
        tables: Sequence[ModelTable],
        dtype: torch.dtype,
        prepare: Callable[[], None] | None = None,
        clients: int = 0,
    ) -> None:
        if sys.platform != "linux":
            raise UserError(
                f"{workers} worker processes were asked for, which need Linux; here, train in one: --workers 1"
            )
        self.workers = workers
        self._hire, self._prepare = hire, prepare
        self._flops = {table.digest: table.training_flops_per_sample for table in tables}
        self._shapes: dict[str, Mapping[str, Shape]] = {}
        for table in tables:
            assert isinstance(table, TrainableTable), "no other model can be trained"
            self._shapes |= {f"{table.digest}/{part}": table.state_shapes(part) for part in table.parts}
        self._dtype = dtype
        self._blocks = _RESERVE + max(_KEPT_PER_WORKER * workers, min(clients, _MOST_KEPT))
        self._memory: SharedTensors | None = None
        self._schedule: Schedule[Ticket] = Schedule(workers)
        self._apart: list[Apart] = []
        """Waves of which not all is added up yet."""
        self._hands: dict[Worker, deque[Ticket]] = {}
        self._copies: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()
        weakref.finalize(self, _kill, self._hands)

    def begin(self, job: Job) -> Ticket:
        """Queue it; a worker gets it as soon as one is free."""
        task = Ticket.of(job)
        self._schedule.put(task)
        self._go_on(timeout_s=0)
        return task

    def begin_apart(self, job: TrainJob) -> Apart:
        """Queue its chains; they are handed out when a result is asked for, with those of all that has begun."""
        ticket = Apart(job, self._schedule, flops=self._flops[job.model])
        self._apart.append(ticket)
        return ticket

    def finish(self, ticket: Ticket | Apart) -> Any:
        """Wait for the result, and take in those of other jobs meanwhile.

        Raises what doing the job raised, with the way there in a note; `RunFailedError` when a worker has died.
        """
        self._go_on(timeout_s=0)
        while not ticket.done:
            self._go_on()
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def new_like(self, value: TensorDict) -> TensorDict | None:
        """A block for such a part; None when jobs may need all that are left."""
        part = self._shared.part_of(value)
        block = self._shared.take(part) if part and self._shared.free(part) > _RESERVE else None
        return block.tensors if block else None

    def forget(self) -> None:
        """Drop every job that was begun. If a worker has one, all workers end; they begin anew with the next job."""
        self._drop(RuntimeError("the job was dropped before it was done"))

    def close(self) -> None:
        """End the workers, and let go of the memory as soon as nobody holds a model in it."""
        self.forget()
        _kill(self._hands)
        self._memory = None

    @property
    def _shared(self) -> SharedTensors:
        if self._memory is None:
            self._memory = SharedTensors(self._shapes, self._dtype, self._blocks)
        return self._memory

    def _go_on(self, timeout_s: float | None = None) -> None:
        """Wait for answers, hand out what comes next, and only then add up: no worker is to wait for that."""
        self._take_in(timeout_s)
        self._hand_out()
        while any([wave.add_up() for wave in self._apart]):
            self._hand_out()
        self._apart = [wave for wave in self._apart if not wave.done]

    def _take_in(self, timeout_s: float | None = None) -> None:
        """Wait for answers, and let their jobs end."""
        workers: dict[Any, Worker] = {worker.connection: worker for worker in self._hands}
        for connection in wait(list(workers), timeout_s) if workers else ():
            try:
                answer = workers[connection].receive()
            except (EOFError, OSError):
                self._bury(workers[connection])
                return
            self._settle(self._hands[workers[connection]], answer)

    def _settle(self, tasks: deque[Ticket], answer: Answer) -> None:
        task = tasks[0]
        task.copies = []  # may be free now, for what follows
        result = answer.result
        if not isinstance(task.job, ScoreJob) and answer.failure is None:
            result = [
                {name: self._kept(made, blocks.pop(name, None)) for name, made in outputs.items()}
                for outputs, blocks in zip(result, task.outputs, strict=True)
            ]
        task.end(result, answer.failure.error() if answer.failure else None)
        tasks.popleft()

    def _kept(self, made: BlockAddress | Packed, block: Block | None) -> TensorDict:
        """An output where it is, or a copy of it when jobs may need its block."""
        if not isinstance(made, BlockAddress):
            return unpacked(made)
        assert block is not None and block.address == made
        if self._shared.free(made.part) >= _RESERVE:
            return block.tensors
        return {name: tensor.clone() for name, tensor in block.tensors.items()}

    def _hand_out(self) -> None:
        """Give jobs to workers, as far as there are hands and memory for them."""
        while len(self._schedule):
            self._gather()
            found = self._schedule.next(list(self._hands.values()))
            busy = any(self._hands.values())
            if found is None or (busy and self._short(found[1])):
                return
            worker, task = list(self._hands)[found[0]], found[1]
            self._schedule.begin(task)
            try:
                message = pickle.dumps(self._order(task))
            except Exception as error:
                task.end(None, error)
            else:
                self._send(message, task, worker)

    def _send(self, message: bytes, task: Ticket, worker: Worker) -> None:
        self._hands[worker].append(task)
        try:
            worker.send(message)
        except OSError:
            self._bury(worker)

    def _gather(self) -> None:
        if len(self._hands) == self.workers:
            return
        shared = self._shared  # in being before they are forked, or they would not have it
        if self._prepare is not None:
            self._prepare()
        with uninterrupted():
            while len(self._hands) < self.workers:
                self._hands[Worker(self._hire, shared)] = deque()

    def _short(self, task: Ticket) -> bool:
        """Whether blocks are missing that will be free once other jobs have ended."""
        parts = (f"{task.job.model}/{name}" for names in outputs_of(task.job) for name in names)
        needed = Counter(part for part in parts if part in self._shared.parts)
        for value in task.values:
            part = self._shared.part_of(value)
            if part and id(value) not in self._copies and not self._shared.locate(value):
                needed[part] += 1
        return any(number > self._shared.free(part) for part, number in needed.items())

    def _order(self, task: Ticket) -> Order:
        """What cannot have a block travels with the messages."""
        values = [self._given(value, task) for value in task.values]
        for names in outputs_of(task.job):
            blocks = {name: self._shared.take(f"{task.job.model}/{name}") for name in names}
            task.outputs.append({name: block for name, block in blocks.items() if block})
        addresses = [{name: block.address for name, block in blocks.items()} for blocks in task.outputs]
        return Order(task.job, values, addresses)

    def _given(self, value: TensorDict, task: Ticket) -> BlockAddress | Packed:
        """Where *value* is: in shared memory already, or copied there while jobs that take it are under way."""
        if address := self._shared.locate(value):
            return address
        block = self._copies.get(id(value)) or self._copied(value)
        if block is None:
            return packed(value)
        task.copies.append(block)
        return block.address

    def _copied(self, value: TensorDict) -> Block | None:
        part = self._shared.part_of(value)
        block = self._shared.take(part) if part else None
        if block:
            self._shared.fill(block.address, value)
            self._copies[id(value)] = block
        return block

    def _bury(self, worker: Worker) -> None:
        """Begin anew, without any job, because *worker* has died."""
        self._drop(RunFailedError(_obituary(worker.kill())))
        _kill(self._hands)

    def _drop(self, reason: BaseException) -> None:
        """Let all jobs fail. Blocks are free only once nobody writes to them."""
        tasks = [task for tasks in self._hands.values() for task in tasks]
        if tasks:
            _kill(self._hands)
        for task in (*tasks, *self._schedule.clear()):
            task.end(None, reason)
        for wave in self._apart:
            wave.end(reason)
        self._apart.clear()


def _kill(hands: dict[Worker, deque[Ticket]]) -> None:
    with uninterrupted():
        for worker in hands:
            worker.kill()
        hands.clear()


def _obituary(number: int | None) -> str:
    if number == signal.SIGKILL:
        return "a worker process was killed, most likely because memory ran out; try again with fewer --workers"
    how = "left by itself" if number is None else f"was ended by signal {number} ({signal.strsignal(number)})"
    return f"a worker process {how}; --workers 1 does its work in the open"
