"""Running a scenario: every protocol on every seed, one after the other, each from time zero.

A run that was interrupted is run again from time zero as well: the clock is cheap, and what was learned is found in the
store. A finished run is not run again.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import sys
import time
import uuid
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedsim import registry
from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.results import Results
from fedsim.experiment.run_folder import RunFolder
from fedsim.experiment.simulate import simulate
from fedsim.kernel.streams import Streams
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph
from fedsim.learning.learner import PARTIAL_SUM, GraphLearner, Learner, NoLearner
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.metrics.cost_models.settings import RunFacts
from fedsim.metrics.summary import event_row, formula_row
from fedsim.metrics.tables import links_table, rounds_table, transfers_table
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.world import World
from fedsim.scenario.build import Materials, build_world, gather_materials
from fedsim.scenario.load import written_out
from fedsim.scenario.schema import Scenario

if TYPE_CHECKING:
    from fedsim.learning.executors.executor import Executor

__all__ = ["CHECKPOINT_INTERVAL_S", "check", "run"]

CHECKPOINT_INTERVAL_S = 30.0
"""Real seconds between checkpoints: what a kill costs at most, beside one chunk of training."""


def check(scenario: Scenario) -> Materials:
    """Everything that can be checked before a run, on the first seed; raises `UserError` when something is wrong."""
    materials = gather_materials(scenario, scenario.seeds[0])
    for protocol in scenario.protocols:
        build_world(scenario, protocol, materials, lambda *_: NoLearner())
    return materials


def run(
    scenario: Scenario,
    *,
    out: Path | str | None = None,
    store: Path | str | None = None,
    resume: bool = False,
    executor: str = "auto",
    torch_device: str = "cpu",
    checkpoint_interval_s: float = CHECKPOINT_INTERVAL_S,
    observer: Observer | None = None,
) -> Results:
    """Run *scenario* into the folder *out* (default ``runs/<name>``) and return its results.

    A finished run of the same scenario in that folder is returned as it is. An unfinished one needs *resume*. *store*
    is where learned values are kept (default: in the folder). Raises `UserError` when anything asked for is wrong.
    """
    folder_path = Path("runs") / scenario.name if out is None else Path(out)
    check(scenario)
    maker = _executor_class(executor, torch_device) if scenario.learn else None
    with RunFolder(folder_path, written_out(scenario), resume=resume) as folder:
        if not folder.finished:
            host = _Host(maker, torch_device, folder_path / "store" if store is None else Path(store), checkpoint_interval_s)
            _Runner(scenario, folder, host, observer or Observer()).run()
    return Results(folder_path)


def _executor_class(name: str, torch_device: str) -> type[Executor]:
    """``auto`` is serial: the only executor there is."""
    chosen: type[Executor] = registry.load("executors", "serial" if name == "auto" else name)
    if torch_device not in chosen.torch_devices:
        raise UserError(
            f"executor {name!r} does not compute on torch device {torch_device!r}; "
            f"it does on: {', '.join(chosen.torch_devices)}"
        )
    return chosen


@dataclass(frozen=True)
class _Host:
    """How this machine runs it: nothing here changes a result, but for the numeric family of the executor."""

    executor: type[Executor] | None
    torch_device: str
    store: Path
    checkpoint_interval_s: float


@dataclass
class _Runner:
    """One run of a scenario."""

    scenario: Scenario
    folder: RunFolder
    host: _Host
    observer: Observer
    rounds: list[pd.DataFrame] = field(default_factory=list)
    transfers: list[pd.DataFrame] = field(default_factory=list)
    links: list[pd.DataFrame] = field(default_factory=list)
    summary: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> None:
        """Every protocol on every seed, then the tables."""
        began_s = time.monotonic()
        self._begin_manifest()
        for seed in self.scenario.seeds:
            materials = gather_materials(self.scenario, seed)
            for protocol in self.scenario.protocols:
                self._run_one(protocol, materials)
                self._save_tables()
                gc.collect()  # a finished world is full of cycles
        manifest = self.folder.manifest
        manifest["real_seconds"] = manifest["real_seconds"] + time.monotonic() - began_s
        manifest["peak_memory_bytes"] = max(manifest["peak_memory_bytes"], _peak_memory_bytes())
        manifest["status"] = "finished"
        self.folder.save_manifest()

    def _run_one(self, protocol: Protocol, materials: Materials) -> None:
        began_s = time.monotonic()
        seed, title, stop = materials.seed, protocol.title, protocol.stop or self.scenario.stop
        self.observer.begin(protocol, seed, stop, len(materials.topology.sensors))
        with _Learners(self.scenario, self.host, self.folder.manifest) as learners:
            world = build_world(
                self.scenario, protocol, materials, learners.make, partial(self.observer.round_done, protocol, seed)
            )
            simulate(world, protocol, stop)
            final = world.learner.keep_final(f"{title}/{seed}", world.loop.model)
        self.observer.end(protocol, seed)
        self._add_tables(protocol, seed, world, stop.target_accuracy)
        self.folder.manifest["runs"].append(
            {
                "protocol": title,
                "seed": seed,
                "trace_hash": world.trace.digest(),
                "sim_time_s": world.env.now,
                "rounds": len(world.loop.rounds_done),
                "real_seconds": time.monotonic() - began_s,
                "final_weights": final,
            }
        )

    def _add_tables(self, protocol: Protocol, seed: int, world: World, target_accuracy: float | None) -> None:
        def named(table: pd.DataFrame) -> pd.DataFrame:
            table.insert(0, "protocol", protocol.title)
            table.insert(1, "seed", seed)
            return table

        evaluations = {done.number: done.metrics for done in world.loop.rounds_done}
        rounds = rounds_table(world.trace, evaluations, on=self.scenario.evaluate.on)
        transfers = transfers_table(
            world.trace, list(world.network.in_flight), world.network.links, [client.name for client in world.clients]
        )
        links = links_table(transfers, world.network.links, duration_s=world.env.now)
        event = event_row(rounds, target_accuracy)
        rows = {"event": event}
        cohort = protocol.cohort_size(len(world.clients))
        if self.scenario.formula is not None and cohort is not None:
            facts = RunFacts(len(world.clients), cohort, len(rounds), world.model.bytes())
            rows["formula"] = formula_row(event, self.scenario.formula.cost(facts))
        self.summary += [
            {"protocol": protocol.title, "seed": seed, **rows[accounting]} for accounting in self.scenario.accounting
        ]
        self.rounds.append(named(rounds))
        self.links.append(named(links))
        if self.scenario.save_transfers:
            self.transfers.append(named(transfers))

    def _save_tables(self) -> None:
        rounds = pd.concat(self.rounds, ignore_index=True)
        self.folder.save_table("rounds.parquet", rounds)
        self.folder.save_table("rounds.csv", rounds)
        self.folder.save_table("summary.csv", pd.DataFrame(self.summary))
        self.folder.save_table("links.csv", pd.concat(self.links, ignore_index=True))
        if self.scenario.save_transfers:
            self.folder.save_table("transfers.parquet", pd.concat(self.transfers, ignore_index=True))
        self.folder.save_manifest()

    def _begin_manifest(self) -> None:
        """Everything that is known before the run; a run that goes on keeps its name and the time spent so far."""
        before = self.folder.manifest
        family = self.host.executor.numeric_family(self.host.torch_device) if self.host.executor else None
        if before and before["numeric_family"] != family:
            raise UserError(
                f"the run in {self.folder.path} was begun with the arithmetic {before['numeric_family']!r}, and here it "
                f"would go on with {family!r}; numbers would differ, so choose another folder with --out"
            )
        self.folder.manifest = {
            "scenario": self.scenario.name,
            "status": "running",
            "run": before.get("run", uuid.uuid4().hex),
            "fedsim": metadata.version("fedsim-industrial"),
            "seeds": list(self.scenario.seeds),
            "store": os.path.relpath(self.host.store, self.folder.path),
            "numeric_family": family,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": {name: metadata.version(name) for name in ("torch", "numpy", "simpy", "networkx", "scikit-learn")},
            "real_seconds": before.get("real_seconds", 0.0),
            "peak_memory_bytes": before.get("peak_memory_bytes", 0),
            "runs": [],
        }
        self.folder.save_manifest()


class _Learners:
    """Makes the learner of one protocol on one seed, and closes its store."""

    def __init__(self, scenario: Scenario, host: _Host, manifest: dict[str, Any]) -> None:
        self._scenario = scenario
        self._host = host
        self._run = manifest["run"]
        self._store: Store | None = None

    def make(self, materials: Materials, protocol: Protocol, training: TrainingSettings) -> Learner:
        """The learner that the scenario asks for."""
        if self._host.executor is None:
            return NoLearner()
        executor = self._host.executor(materials.table, materials.dataset, self._host.torch_device)
        store = self._store = Store(self._host.store, self._run, executor)
        graph = Graph(f"{executor.family}/sum{PARTIAL_SUM}")
        forcer = Forcer(graph, executor, store, checkpoint_interval_s=self._host.checkpoint_interval_s)
        return GraphLearner(
            graph=graph,
            forcer=forcer,
            store=store,
            table=materials.table,
            dataset=materials.dataset,
            training=training,
            streams=Streams(materials.seed),
            tags={"protocol": protocol.title, "seed": materials.seed},
        )

    def __enter__(self) -> _Learners:
        return self

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()


def _peak_memory_bytes() -> int:
    """Most memory that this process has had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
