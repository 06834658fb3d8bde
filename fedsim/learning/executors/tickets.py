"""What is waited for once workers were given a job: the job, or a wave whose chains are jobs of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedsim.learning.executors.chains import Gathering, chain_jobs
from fedsim.learning.executors.schedule import Schedule, Task
from fedsim.learning.executors.shared_tensors import Block
from fedsim.learning.executors.trainer import TensorDict
from fedsim.learning.executors.worker_pool import Job, TrainJob

__all__ = ["Apart", "Ticket"]


@dataclass(eq=False, kw_only=True)
class Ticket(Task):
    """A job from its beginning to its end."""

    job: Job
    """Without its values."""
    values: Sequence[TensorDict]
    copies: list[Block] = field(default_factory=list)
    """Of values that were not in shared memory."""
    outputs: list[dict[str, Block]] = field(default_factory=list)
    done: bool = False
    result: Any = None
    error: BaseException | None = None

    @classmethod
    def of(cls, job: Job, *, work: float = 0.0, results: int = 1) -> Ticket:
        """Of a job that takes so much *work*, and makes so many *results* to be added up."""
        return cls(job=replace(job, values=()), values=job.values, work=work, results=results)

    def end(self, result: Any, error: BaseException | None) -> None:
        """Keep the outcome, and let go of everything else."""
        self.result, self.error, self.done = result, error, True
        self.values, self.copies, self.outputs = (), [], []


class Apart:
    """A wave whose chains are jobs of their own: what they make is added up in its order, as soon as it is there."""

    def __init__(self, job: TrainJob, schedule: Schedule[Ticket], *, flops: float) -> None:
        """Put the chains into the *schedule*; each of their samples takes so many *flops*."""
        jobs = chain_jobs(job, flops=flops, workers=schedule.workers)
        chains = [Ticket.of(one.job, work=one.flops, results=one.chains) for one in jobs]
        self._schedule = schedule
        self._line = schedule.put_line(chains)
        self._left = deque(chains)
        self._gathering: Gathering | None = Gathering(job)
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def add_up(self) -> bool:
        """Take what has come, as far as it is its turn; whether there was anything. The first that failed ends all."""
        before = len(self._left)
        while self._left and self._left[0].done:
            chain = self._left.popleft()
            self._schedule.take(chain)
            if chain.error is not None:
                self.end(chain.error)
                break
            assert self._gathering is not None
            self._gathering.take(chain.result)
            chain.result = None
        if self._gathering is not None and not self._left:
            self.result, self._gathering, self.done = self._gathering.result(), None, True
        return len(self._left) < before

    def end(self, error: BaseException) -> None:
        """Fail, and let go of everything."""
        self.error, self.done = error, True
        self._schedule.drop(self._line)
        self._left.clear()
        self._gathering = None
