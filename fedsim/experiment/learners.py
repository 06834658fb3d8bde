"""How this machine learns: the executor, where it computes, and the store of what it computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fedsim import registry
from fedsim.errors import UserError, nearest
from fedsim.files import why_no_folder
from fedsim.kernel.streams import Streams
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph
from fedsim.learning.learner import PARTIAL_SUM, GraphLearner, Learner, NoLearner
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials

if TYPE_CHECKING:
    from fedsim.learning.executors.executor import Executor

__all__ = ["CHECKPOINT_INTERVAL_S", "Host", "Learners", "check_host", "check_store", "host_for"]

CHECKPOINT_INTERVAL_S = 30.0
"""Real seconds between checkpoints: what a kill costs at most, beside one chunk of training."""


@dataclass(frozen=True)
class Host:
    """What runs a scenario. Nothing of it changes a result, except for the numeric family of the executor."""

    executor: type[Executor] | None
    """None when nothing is learned."""
    torch_device: str
    checkpoint_interval_s: float

    @property
    def numeric_family(self) -> str | None:
        """All that may change a bit of a result, beside the scenario; None when nothing is learned."""
        if self.executor is None:
            return None
        return f"{self.executor.numeric_family(self.torch_device)}/sum{PARTIAL_SUM}"


def check_host(executor: str, *, checkpoint_interval_s: float) -> None:
    """Raise `UserError` for what is wrong with a host as far as that can be told before it is loaded."""
    if not checkpoint_interval_s > 0:
        raise UserError(f"checkpoint_interval_s={checkpoint_interval_s} must be positive")
    known = ("auto", *registry.names("executors"))
    if executor not in known:
        near = nearest(executor, known)
        raise UserError(f"--executor: no executor is called {executor!r}{near} (known: {', '.join(known)})")


def host_for(executor: str, *, learn: bool, torch_device: str, checkpoint_interval_s: float) -> Host:
    """The host for an executor's name; ``auto`` is ``serial``, the only executor there is.

    Raises `UserError` when there is no such executor, or when it does not compute on *torch_device*.
    """
    check_host(executor, checkpoint_interval_s=checkpoint_interval_s)
    if not learn:
        return Host(None, torch_device, checkpoint_interval_s)
    chosen: type[Executor] = registry.load("executors", "serial" if executor == "auto" else executor)
    if torch_device not in chosen.torch_devices:
        raise UserError(
            f"executor {executor!r} does not compute on torch device {torch_device!r}; "
            f"it does on: {', '.join(chosen.torch_devices)}"
        )
    return Host(chosen, torch_device, checkpoint_interval_s)


def check_store(folder: Path) -> None:
    """Raise `UserError` when *folder*, which need not be there yet, cannot be a store. Nothing is written."""
    for place in (folder, *(folder / name for name in ("metrics", "ledger", "tensors", "index"))):
        if problem := why_no_folder(place):
            raise UserError(f"{problem}; choose another store with --store")


class Learners:
    """Makes the learner of one protocol on one seed after the other; a ``with`` block closes the last one's store.

    What all of them share is made or read once: the executor of a seed's materials, and the metrics in the store.
    """

    def __init__(self, host: Host, store: Path, run: str) -> None:
        self._host = host
        self._folder = store
        self._run = run
        self._store: Store | None = None
        self._executor: tuple[Materials, Executor] | None = None

    def make(self, materials: Materials, protocol: Protocol, training: TrainingSettings) -> Learner:
        """A learner from its beginning; what the store has is not computed again."""
        host = self._host
        if host.executor is None:
            return NoLearner()
        if self._executor is None or self._executor[0] is not materials:
            self._executor = materials, host.executor(materials.table, materials.dataset, host.torch_device)
        executor, label = self._executor[1], f"{protocol.title}/{materials.seed}"
        known = self._store.all_metrics if self._store else None
        store = self._store = Store(self._folder, self._run, executor, label=label, metrics=known)
        graph = Graph(str(host.numeric_family))
        return GraphLearner(
            graph=graph,
            forcer=Forcer(graph, executor, store, checkpoint_interval_s=host.checkpoint_interval_s),
            store=store,
            table=materials.table,
            dataset=materials.dataset,
            training=training,
            streams=Streams(materials.seed),
            tags={"protocol": protocol.title, "seed": materials.seed},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._store is not None:
            self._store.close()
