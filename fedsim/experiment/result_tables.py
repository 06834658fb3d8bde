"""The tables of a run folder, growing by one protocol on one seed at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedsim.experiment.run_folder import RunFolder
from fedsim.metrics.cost_models.settings import RunFacts
from fedsim.metrics.critical_path import critical_paths
from fedsim.metrics.link_loads import link_loads_table
from fedsim.metrics.summary import event_row, formula_row
from fedsim.metrics.tables import (
    confusion_table,
    device_classes_table,
    groups_table,
    links_table,
    rounds_table,
    transfers_table,
)
from fedsim.metrics.where_time_goes import critical_path_table, pieces_table, stragglers_table
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.world import Client, World
from fedsim.scenario.chosen_metrics import chosen_metrics, counted_classes
from fedsim.scenario.closed_forms import closed_form
from fedsim.scenario.schema import Scenario

__all__ = ["ResultTables", "stream_columns"]


@dataclass
class ResultTables:
    """Rounds, transfers, links, groups, where the time went, what was taken for what, and the summary, so far.

    Transfers are many, so they are not kept in memory: each run is appended to a file that gets its name when all are
    done, at the end of a ``with`` block.
    """

    scenario: Scenario
    folder: RunFolder
    rounds: list[pd.DataFrame] = field(default_factory=list)
    links: list[pd.DataFrame] = field(default_factory=list)
    times: dict[str, list[pd.DataFrame]] = field(default_factory=dict)
    """Tables of where the time went, by file."""
    groups: list[pd.DataFrame] = field(default_factory=list)
    device_classes: list[pd.DataFrame] = field(default_factory=list)
    confusion: list[pd.DataFrame] = field(default_factory=list)
    summary: list[dict[str, Any]] = field(default_factory=list)
    _transfers: pq.ParquetWriter | None = None
    _file: BinaryIO | None = None

    def add(self, protocol: Protocol, seed: int, world: World, more: Mapping[str, float]) -> None:
        """Measure a world in which *protocol* has ended; *more* are columns of its row in the summary."""
        evaluations = {done.number: done.metrics for done in world.loop.rounds_done}
        chosen = chosen_metrics(self.scenario.evaluate, world.dataset)
        names = [client.name for client in world.clients]
        rounds = rounds_table(world.trace, evaluations, on=self.scenario.evaluate.on, chosen=chosen, clients=names)
        in_flight = world.network.in_flight
        links = links_table(world.trace, in_flight, world.network.links, duration_s=world.env.now)
        first = {"protocol": protocol.title, "seed": seed}
        self.rounds.append(_with_columns(first, rounds))
        self.links.append(_with_columns(first, links))
        if last := [metrics for metrics in evaluations.values() if metrics][-1:]:
            self.confusion.append(_with_columns(first, confusion_table(last[0], counted_classes(world.dataset))))
        for name, table in _times(world, names).items():
            self.times.setdefault(name, []).append(_with_columns(first, table))
        if len(world.trace.groups):
            self.groups.append(_with_columns(first, groups_table(world.trace, names)))
        if classes := world.loop.device_classes:
            by_class = {done.number: done.by_class for done in world.loop.rounds_done}
            of_classes = device_classes_table(world.trace, by_class, classes, chosen=chosen)
            self.device_classes.append(_with_columns(first, of_classes))
        if self.scenario.save_transfers:
            transfers = transfers_table(world.trace, in_flight, world.network.links, names)
            self._append_transfers(_with_columns(first, transfers))
        self.summary += [first | row for row in self._summary_rows(protocol, world, rounds, more)]

    def save(self) -> None:
        """Write all tables but the transfers anew."""
        rounds = pd.concat(self.rounds, ignore_index=True)
        self.folder.save_table("rounds.parquet", rounds)
        self.folder.save_table("rounds.csv", rounds)
        self.folder.save_table("summary.csv", pd.DataFrame(self.summary))
        self.folder.save_table("links.csv", pd.concat(self.links, ignore_index=True))
        for name, tables in self.times.items():
            self.folder.save_table(name, pd.concat(tables, ignore_index=True))
        if self.groups:
            self.folder.save_table("groups.parquet", pd.concat(self.groups, ignore_index=True))
        if self.device_classes:
            self.folder.save_table("device_classes.csv", pd.concat(self.device_classes, ignore_index=True))
        if any(map(len, self.confusion)):
            self.folder.save_table("confusion.csv", pd.concat(self.confusion, ignore_index=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._transfers is None or self._file is None:
            return
        self._transfers.close()
        self._file.close()
        if error is None:
            self._scratch.replace(self.folder.path / "transfers.parquet")

    @property
    def _scratch(self) -> Path:
        return self.folder.path / ".transfers.parquet.tmp"

    def _append_transfers(self, transfers: pd.DataFrame) -> None:
        table = pa.Table.from_pandas(transfers, preserve_index=False)
        if self._transfers is None:
            self._file = self._scratch.open("wb")  # a path could also be taken for an address
            self._transfers = pq.ParquetWriter(self._file, table.schema)
        self._transfers.write_table(table)

    def _summary_rows(
        self, protocol: Protocol, world: World, rounds: pd.DataFrame, more: Mapping[str, float]
    ) -> Sequence[dict[str, Any]]:
        own = protocol.stop.target_accuracy if protocol.stop else None
        event = event_row(rounds, self.scenario.stop.target_accuracy if own is None else own)
        event |= stream_columns(world.clients) | dict(more)
        rows = {"event": event}
        form = closed_form(protocol)
        if self.scenario.formula is not None and form is not None:
            interval, calibration_bytes = form.alternation(world.model)
            members = Counter(client.attachment.backbone for client in world.clients)
            facts = RunFacts(
                clients=len(world.clients),
                cohort=form.mean_cohort(len(world.clients)),
                groups=form.groups(len(world.clients), len(rounds)),
                model_bytes=world.model.bytes(),
                interval=interval,
                calibration_bytes=calibration_bytes,
                at_stations=form.stations(members.values()),
            )
            rows["formula"] = formula_row(event, self.scenario.formula.cost(facts))
        return [rows[accounting] for accounting in self.scenario.accounting]


def _times(world: World, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """By file: where the time went in *world*, whose clients have these *names*."""
    trace, links = world.trace, world.network.links
    pieces = critical_paths(trace)
    return {
        "critical_path.csv": critical_path_table(trace, pieces),
        "critical_pieces.parquet": pieces_table(pieces, links, names),
        "stragglers.csv": stragglers_table(trace, pieces, names),
        "link_loads.csv": link_loads_table(trace, world.network.in_flight, links, duration_s=world.env.now),
    }


def _with_columns(first: dict[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    """*table* behind constant columns."""
    return pd.concat([pd.DataFrame(first, index=table.index), table], axis="columns")


def stream_columns(clients: Sequence[Client]) -> dict[str, float]:
    """Columns of a summary; none when no client has a stream.

    ``passes_mean`` and ``passes_max``: samples used over samples held, over all clients; beyond 1 a device has seen
    its finite local set more than once. ``missed_samples``: overwritten before any training took them, all clients
    together.
    """
    passes = [client.stream.consumed / client.samples for client in clients if client.stream is not None]
    if not passes:
        return {}
    return {
        "passes_mean": math.fsum(passes) / len(passes),
        "passes_max": max(passes),
        "missed_samples": sum(client.stream.missed for client in clients if client.stream is not None),
    }
