"""Which worker does which task next: large ones first, as far as results can be taken in their order.

Tasks whose results are taken one after the other (models that a sum adds up) are a line. A few lines are worked off
side by side, so that few of them are half done at a time; when their tasks begin is planned for all of them together,
so that workers end together. All other tasks come before lines, in the order given. Nothing here knows a process or a
clock, and no number of a result depends on it.
"""

from __future__ import annotations

import itertools
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fedsim.learning.executors.planned_starts import planned_starts

__all__ = ["AT_A_TIME", "WAITING", "Line", "Schedule", "Task", "side_by_side"]

AT_A_TIME = 2
"""Tasks of one worker: one in hand and one waiting, so that it is never idle while this process is busy."""
WAITING = 2
"""Results, for each worker, that may be there before it is their turn to be taken."""


@dataclass(eq=False)
class Line:
    """Tasks whose results are taken in their order."""

    taken: int = 0
    """Of how many the result has been taken."""


@dataclass(eq=False, kw_only=True)
class Task:
    """Something to do."""

    work: float = 0.0
    """How long it takes, in units that all tasks of lines have in common; 0 for what is in none."""
    results: int = 1
    """How many there are of it, all taken together."""
    line: Line | None = None
    place: int = 0
    """In its line."""
    turn: int = 0
    """Lines of one turn are worked off side by side."""
    urgency: tuple[float, ...] = ()
    """The lowest comes first."""

    @property
    def is_next(self) -> bool:
        """Whether its result can be taken as soon as it is there."""
        return self.line is None or self.place == self.line.taken


T = TypeVar("T", bound=Task)


def side_by_side(workers: int) -> int:
    """How many lines are worked off at a time: as many as there are workers, and an even number, as rounds have."""
    return workers + workers % 2


class Schedule(Generic[T]):
    """Tasks that nobody has begun, and those of lines whose results have not been taken yet."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._queue: list[T] = []
        self._under_way: list[T] = []
        self._lines = 0
        self._planned = True
        self._sequence = itertools.count()

    def __len__(self) -> int:
        """How many tasks nobody has begun."""
        return len(self._queue)

    def put(self, task: T) -> None:
        """A task that is in no line."""
        task.urgency = (0, next(self._sequence))
        insort(self._queue, task, key=_urgency)

    def put_line(self, tasks: Sequence[T]) -> Line:
        """Tasks whose results are to be taken in their order."""
        if not self._under_way and all(task.line is None for task in self._queue):
            self._lines = 0
        line, turn = Line(), self._lines // side_by_side(self.workers)
        for place, task in enumerate(tasks):
            task.line, task.place, task.turn = line, place, turn
            task.urgency = (1, turn, 0.0, -task.work, self._lines, place)
        self._queue += tasks
        self._lines += 1
        self._planned = False
        return line

    def _plan(self) -> None:
        """Order what is queued, turn by turn by the planned starts."""
        turns: dict[int, list[T]] = {}
        for task in self._queue:
            if task.line is not None:
                turns.setdefault(task.turn, []).append(task)
        for tasks in turns.values():
            tasks.sort(key=lambda task: task.urgency[3:])
            for task, start in zip(tasks, planned_starts([task.work for task in tasks], self.workers), strict=True):
                task.urgency = (*task.urgency[:2], start, *task.urgency[3:])
        self._queue.sort(key=_urgency)
        self._planned = True

    def next(self, hands: Sequence[Sequence[T]]) -> tuple[int, T] | None:
        """Which worker should get which task, where *hands* are what each of them has to do; None: not yet."""
        if not self._planned:
            self._plan()
        task = next((task for task in self._queue if self._may_begin(task)), None)
        if task is None:
            return None
        worker = min(range(len(hands)), key=lambda worker: (len(hands[worker]), _work(hands[worker])))
        if not hands[worker] or (len(hands[worker]) < AT_A_TIME and self._may_wait(task, hands[worker])):
            return worker, task
        return None

    def _may_begin(self, task: T) -> bool:
        """Unless too many results would be there that cannot be taken. What is next can: so some task always may."""
        waiting = sum(other.results for other in self._under_way if not other.is_next)
        return task.is_next or waiting + task.results <= WAITING * self.workers

    def _may_wait(self, task: T, in_hand: Sequence[T]) -> bool:
        """Whether it may wait for a worker: if there is enough for all others to do until that one has done both."""
        others = _work(self._queue) - task.work
        return task.line is None or others >= (self.workers - 1) * (_work(in_hand) + task.work)

    def begin(self, task: T) -> None:
        """Somebody has *task* in hand."""
        self._queue.remove(task)
        if task.line is not None:
            self._under_way.append(task)

    def take(self, task: T) -> None:
        """The result of the next *task* of a line has been taken."""
        assert task.line is not None and task.is_next
        task.line.taken += 1
        self._under_way.remove(task)

    def drop(self, line: Line) -> None:
        """Nobody will take any result of *line*."""
        self._queue = [task for task in self._queue if task.line is not line]
        self._under_way = [task for task in self._under_way if task.line is not line]

    def clear(self) -> list[T]:
        """Drop everything; returns what nobody had begun."""
        queued, self._queue, self._under_way = self._queue, [], []
        return queued


def _urgency(task: Task) -> tuple[float, ...]:
    return task.urgency


def _work(tasks: Sequence[Task]) -> float:
    return sum(task.work for task in tasks)
