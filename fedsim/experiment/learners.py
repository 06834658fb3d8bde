"""What the learners of a run share: the executor of a seed's materials, and the store of what was computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from fedsim.experiment.host import Host, Training
from fedsim.kernel.streams import Streams
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph
from fedsim.learning.graph_learner import GraphLearner
from fedsim.learning.learner import Learner, NoLearner
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials

if TYPE_CHECKING:
    from fedsim.learning.executors.executor import Executor

__all__ = ["Learners"]


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
        self._store: Store | None = None
        self._executor: tuple[Materials, Executor] | None = None

    def make(self, materials: Materials, protocol: Protocol, training: TrainingSettings) -> Learner:
        """A learner from its beginning; what the store has is not computed again."""
        host = self._host
        if host.training is None:
            return NoLearner()
        executor, label = self._executor_for(materials, host.training), f"{protocol.title}/{materials.seed}"
        if self._store is None:
            self._store = Store(self._folder, self._run, executor, label=label, tell=self._tell)
        store = self._store = self._store.labelled(label, executor)
        graph = Graph(host.training.numeric_family)
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

    def _executor_for(self, materials: Materials, training: Training) -> Executor:
        """The executor of the materials that are trained on; that of other ones is closed first."""
        if self._executor is None or self._executor[0] is not materials:
            self._close_executor()
            made = training.executor(
                materials.table,
                materials.dataset,
                training.torch_device,
                precision=training.precision,
                workers=training.workers,
            )
            self._executor = materials, made
        return self._executor[1]

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
