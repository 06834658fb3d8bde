"""What runs a scenario here: the executor and why, its workers, where and in what precision it computes, its learners.

Only the executor's arithmetic, the torch device and the precision can change a number, and with them the numeric
family; workers and checkpoints cannot. Left out: memory, which nothing here looks at.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fedsim import registry
from fedsim.errors import UserError, nearest
from fedsim.experiment.learners import graph_learner
from fedsim.imports import source_digest
from fedsim.learning.claims import TrainedElsewhere
from fedsim.learning.executors.choice import AUTO, PRECISIONS, TORCH_DEVICES, ByProtocol, Choice, choose
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph
from fedsim.learning.learner import Learner, NoLearner
from fedsim.learning.rules.changes import SUMMATION
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials

if TYPE_CHECKING:
    from fedsim.learning.executors.executor import Executor
    from fedsim.learning.executors.torch_executor import TorchExecutor

__all__ = [
    "CHECKPOINT_INTERVAL_S",
    "Host",
    "HostOptions",
    "Learners",
    "Training",
    "cores",
    "host_for",
    "numeric_family",
]

MOST_WORKERS = 1024
TIMES = "1 to 4 times (a GRU: up to 10 times)"
"""As long as with kernels, as docs/kernels.md has measured it."""
CHECKPOINT_INTERVAL_S = 30.0
"""Real seconds between checkpoints: what a kill costs at most, beside the waves that are under way."""


@dataclass(frozen=True, kw_only=True)
class HostOptions:
    """What is asked of this machine. Raises `UserError` for a value that is wrong whatever is run."""

    executor: str = AUTO
    """A registered name, or ``auto``."""
    workers: int | None = None
    """Processes that train at the same time; None for as many as the executor has use for, at most `most_workers`."""
    most_workers: int | None = None
    """None: as many as there are cores, where other runs have no need of them."""
    torch_device: str = TORCH_DEVICES[0]
    precision: str = PRECISIONS[0]
    checkpoint_interval_s: float = CHECKPOINT_INTERVAL_S

    def __post_init__(self) -> None:
        """Check each value by itself."""
        known = (AUTO, *registry.names("executors"))
        if self.executor not in known and self.executor not in (known := (AUTO, *registry.all_names("executors"))):
            near = nearest(str(self.executor), known)
            raise UserError(f"--executor: no executor is called {self.executor!r}{near} (known: {', '.join(known)})")
        if self.workers is not None and not (type(self.workers) is int and 1 <= self.workers <= MOST_WORKERS):
            raise UserError(
                f"--workers: {self.workers!r} must be a whole number from 1 to {MOST_WORKERS:,}; leave it out for as "
                "many as there are cores"
            )
        for option, value, choices in (
            ("--torch-device", self.torch_device, TORCH_DEVICES),
            ("--precision", self.precision, PRECISIONS),
        ):
            if value not in choices:
                raise UserError(
                    f"{option}: {value!r} must be one of {', '.join(choices)}{nearest(str(value), choices)}"
                )
        if self.precision == "tf32" and self.torch_device != "cuda":
            raise UserError(
                f"--precision tf32: it is a way to multiply on torch device 'cuda', not on {self.torch_device!r}; "
                "add --torch-device cuda, or leave the option out"
            )
        if type(self.checkpoint_interval_s) not in (int, float) or not self.checkpoint_interval_s > 0:
            raise UserError(
                f"--checkpoint-interval-s: {self.checkpoint_interval_s!r} must be a number of seconds above 0, as in 30"
            )


@dataclass(frozen=True, kw_only=True)
class Training:
    """The executor of a run, chosen before anything is computed."""

    executor: type[TorchExecutor]
    choice: Choice
    asked: str
    """The name it was asked for by: its own, or ``auto``."""
    workers: int
    torch_device: str
    precision: str

    @property
    def numeric_family(self) -> str:
        """All that may change a bit of a result, beside the scenario."""
        return numeric_family(self.executor, self.torch_device, self.precision)

    def facts(self) -> dict[str, Any]:
        """For the manifest."""
        from fedsim.learning.kernels.processor import instruction_set

        return {
            "name": self.choice.name,
            "asked": self.asked,
            "reason": self.choice.reason,
            "remark": self.choice.remark,
            "workers": self.workers,
            "torch_device": self.torch_device,
            "precision": self.precision,
            "processor": instruction_set(),
        }

    def __str__(self) -> str:
        from fedsim.learning.kernels.processor import why_no_kernels

        workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        said = f"{self.choice.name}, {workers}, {self.precision} on {self.torch_device}, as {self.choice.reason}"
        why = why_no_kernels() if self.torch_device == "cpu" else None  # a GPU has no use for them
        return said if why is None else f"{said}; by PyTorch alone, which takes {TIMES} as long, as {why}"


@dataclass(frozen=True)
class Host:
    """What runs a scenario."""

    training: Training | None
    """None when nothing is learned."""
    checkpoint_interval_s: float

    @property
    def remarks(self) -> list[str]:
        """What may not be expected of it."""
        remark = self.training and self.training.choice.remark
        return [remark] if remark else []

    @property
    def numeric_family(self) -> str | None:
        """All that may change a bit of a result, beside the scenario; None when nothing is learned."""
        return None if self.training is None else self.training.numeric_family


def numeric_family(executor: type[TorchExecutor], torch_device: str, precision: str) -> str:
    """The arithmetic of *executor* there, and how a mean is cut into sums; of one from elsewhere, its code too."""
    code = source_digest(executor)
    return "/".join((executor.numeric_family(torch_device, precision), SUMMATION, *([] if code is None else [code])))


def host_for(
    options: HostOptions,
    tables: Sequence[ModelTable],
    *,
    learn: bool,
    protocols: Mapping[str, ByProtocol] | None = None,
) -> Host:
    """The host that trains the models of *tables* as *options* ask, or one that learns nothing.

    *protocols*, by title, may train other models; they change nothing about the choice.
    Raises `UserError` when the executor cannot compute as it is asked to, or when the torch device is not here.
    """
    if not learn:
        return Host(None, options.checkpoint_interval_s)
    from fedsim.learning.executors.torch_devices import why_absent

    if why := why_absent(options.torch_device):
        raise UserError(f"--torch-device {options.torch_device}: {why}; leave the option out to compute on the CPU")
    choice = choose(options.executor, tables, options.torch_device, protocols)
    executor: type[TorchExecutor] = registry.load("executors", choice.name)
    taken = f"executor {choice.name!r}"
    if options.executor == AUTO:
        taken += f" (auto takes it, as {choice.reason})"
    if options.torch_device not in executor.torch_devices:
        raise UserError(
            f"--torch-device {options.torch_device}: {taken} does not compute there, only on: "
            f"{', '.join(executor.torch_devices)}; leave --executor out, or --torch-device"
        )
    trained = (*tables, *(table for of_it in (protocols or {}).values() for table in of_it.models))
    precisions = min((executor.trainer_of(table).precisions for table in trained), key=len)
    if options.precision not in precisions:
        raise UserError(
            f"--precision {options.precision}: {taken} does not compute in it, only in: {', '.join(precisions)}; "
            "leave --precision out"
        )
    training = Training(
        executor=executor,
        choice=choice,
        asked=options.executor,
        workers=_workers(options, executor, choice.name),
        torch_device=options.torch_device,
        precision=options.precision,
    )
    return Host(training, options.checkpoint_interval_s)


def _workers(options: HostOptions, executor: type[TorchExecutor], name: str) -> int:
    """As many as are asked for; else one for each core where more than one is of use."""
    alone: str | None = None
    if options.torch_device == "cuda":
        alone = "on torch device 'cuda' one process trains; leave --workers out"
    elif sys.platform != "linux":
        alone = "several processes need Linux; leave --workers out"
    elif not executor.parallel:
        alone = (
            f"executor {name!r} trains in one process; leave --workers out, or choose --executor processes, "
            "which comes to the same numbers"
        )
    if alone is None:
        return options.workers or options.most_workers or cores()
    if options.workers not in (None, 1):
        raise UserError(f"--workers {options.workers}: {alone}")
    return 1


def cores() -> int:
    """The cores that this process may use; of a container, those it is pinned to."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Learners:
    """Makes the learner of one protocol on one seed after the other. *tell* hears of what is damaged in the store.

    What all of them share is made or read once: the executor of a seed's materials, and the store. The end of a
    ``with`` block closes everything, whatever ended it: no worker of an executor outlives it.
    """

    def __init__(self, host: Host, store: Path, run: str, tell: Callable[[str], None]) -> None:
        self._host = host
        self._folder = store
        self._run = run
        self._tell = tell
        self.patient = True
        """Whether a learner waits where another run in the same store trains the same, or raises `TrainedElsewhere`."""
        self._store: Store | None = None
        self._executor: tuple[Materials, Executor] | None = None

    def make(self, materials: Materials, protocol: Protocol, training: TrainingSettings) -> Learner:
        """A learner from its beginning; what the store has is not computed again."""
        host = self._host
        if host.training is None:
            return NoLearner()
        executor, label = self._executor_for(materials, host.training), f"{protocol.title}/{materials.seed}"
        if self._store is None:
            self._store = Store(self._folder, self._run, executor, label=label, tell=self._tell, wait=self._wait)
        store = self._store = self._store.labelled(label, executor)
        graph = Graph(host.training.numeric_family)
        forcer = Forcer(graph, executor, store, checkpoint_interval_s=host.checkpoint_interval_s)
        return graph_learner(materials, protocol, training, graph, forcer, store)

    def _executor_for(self, materials: Materials, training: Training) -> Executor:
        """The executor of the materials that are trained on; that of other ones is closed first."""
        if self._executor is None or self._executor[0] is not materials:
            self._close_executor()
            made = training.executor(
                tuple(materials.trained.values()),
                materials.dataset,
                training.torch_device,
                precision=training.precision,
                workers=training.workers,
            )
            self._executor = materials, made
        return self._executor[1]

    def _wait(self, holder: str) -> None:
        if not self.patient:
            raise TrainedElsewhere(holder)

    def _close_executor(self) -> None:
        if self._executor is not None:
            self._executor[1].close()
            self._executor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            self._close_executor()
        finally:
            if self._store is not None:
                self._store.close()
