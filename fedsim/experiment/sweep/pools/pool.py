"""What a sweep asks of a pool, and what a point does in one of its processes, whichever pool it is."""

from __future__ import annotations

import math
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from filelock import FileLock

from fedsim.errors import RunFailedError, UserError, in_short
from fedsim.experiment.at_work import LOCK, why_busy
from fedsim.experiment.observer import Observer, Paused
from fedsim.experiment.progress.display import OneRun
from fedsim.experiment.run import run_with
from fedsim.experiment.sweep.points import PointTask, scenario_of
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round, Stop

__all__ = ["Evaluation", "Event", "Pool", "run_point"]

TELL_INTERVAL_S = 0.5


class Evaluation(NamedTuple):
    """A round that was evaluated, with the columns of a table of rounds; on the first of the test sets."""

    round: int
    sim_time_s: float
    uplink_bytes: float
    downlink_bytes: float
    transfer_bytes: float
    accuracy: float
    loss: float

    @classmethod
    def of(cls, done: Round, test_set: str | None) -> Evaluation:
        """What a round has come to, on a *test_set* if there is any. A model that has diverged has no accuracy: NaN."""
        up, down = done.uplink_bytes, done.downlink_bytes
        scores = {} if test_set is None else done.metrics[test_set]
        accuracy = scores.get("accuracy")
        return cls(
            done.number,
            done.sim_time_s,
            up,
            down,
            up + down,
            math.nan if accuracy is None else float(accuracy),
            float(scores.get("loss", math.nan)),
        )


@dataclass(frozen=True)
class Event:
    """Something has happened to a point."""

    key: str
    """Of the point."""
    kind: Literal["progress", "done", "paused", "put off", "wrong", "failed", "killed", "crashed"]
    """``wrong``: its input; ``failed``: from outside, as with a full disk; ``crashed``: a bug."""
    text: str = ""
    """How far it is; or what went wrong."""
    share: float = 0.0
    """How much of it is over."""
    evaluations: tuple[Evaluation, ...] = ()
    """Of a point that has paused: all so far."""

    @property
    def ends(self) -> bool:
        """Whether the point does not run any more."""
        return self.kind != "progress"


class Pool(ABC):
    """Runs points at the same time, up to `size` of them."""

    size: int

    @abstractmethod
    def start(self, task: PointTask) -> None:
        """Begin with a point; there must be room for it."""

    @abstractmethod
    def events(self) -> list[Event]:
        """What has happened since; waits until something has."""

    @abstractmethod
    def close(self) -> None:
        """End all processes, whatever they are doing."""


class _PutOff(Exception):
    """Other points train all that is left of this one."""


class _Watching(Observer):
    """Says how far a point is, and does not wait for other points unless it is patient."""

    def __init__(self, task: PointTask, labels: int, tell: Callable[[Event], None]) -> None:
        self._task = task
        self._labels = labels
        self._tell = tell
        self._ended = 0
        self._run: OneRun | None = None
        self._told_s = 0.0
        self.evaluations: list[Evaluation] = []

    def begin(self, protocol: Protocol, seed: int, stop: Stop, clients: int) -> None:
        """Another protocol, or seed."""
        self._run = OneRun(f"{protocol.title} seed {seed}", stop, time.monotonic())

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        """Say so now and then."""
        assert self._run is not None
        self._run.take(done)
        if time.monotonic() - self._told_s >= TELL_INTERVAL_S:
            self._told_s = time.monotonic()
            share = (self._ended + (self._run.share or 0.0)) / self._labels
            self._tell(Event(self._task.key, "progress", str(self._run), share))

    def pauses(self, done: Round) -> bool:
        """When enough is spent."""
        if done.metrics:
            self.evaluations.append(Evaluation.of(done, next(iter(done.metrics))))
        spent = Evaluation.of(done, None)
        return any(getattr(spent, column) >= amount for column, amount in self._task.pause)

    def end(self, protocol: Protocol, seed: int) -> None:
        """One more is over."""
        self._ended += 1

    def waits(self, holders: Sequence[str]) -> None:
        """Let another point have the process."""
        if not self._task.patient:
            raise _PutOff


def run_point(task: PointTask, tell: Callable[[Event], None]) -> Event:
    """Run a point in this process, to its end, and say how that was; never raises but for `KeyboardInterrupt`."""
    try:
        if why_busy(Path(task.folder)):  # a sweep that was killed may have left a process, which is about to end
            if not task.patient:
                return Event(task.key, "put off")
            with FileLock(Path(task.folder) / LOCK):
                pass
        scenario = scenario_of(task)
        watching = _Watching(task, len(scenario.protocols) * len(scenario.seeds), tell)
        run_with(task.options, scenario, out=task.folder, store=task.store, resume=True, observer=watching)
    except _PutOff:
        return Event(task.key, "put off")
    except Paused:
        return Event(task.key, "paused", evaluations=tuple(watching.evaluations))
    except UserError as error:
        return Event(task.key, "wrong", str(error))
    except RunFailedError as error:
        return Event(task.key, "failed", str(error))
    except MemoryError:
        return Event(task.key, "failed", "there is not enough memory for it")
    except OSError as error:
        return Event(task.key, "failed", in_short(error))
    except Exception:  # a bug: the sweep raises it with this text, when the other points have been run
        return Event(task.key, "crashed", traceback.format_exc())
    return Event(task.key, "done")
