"""The tables of a run folder, growing by one protocol on one seed at a time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Self

import pandas as pd

from fedsim.experiment.appended_table import AppendedTable
from fedsim.experiment.run_folder import RunFolder
from fedsim.metrics.cost_models.settings import RunFacts
from fedsim.metrics.critical_path import Piece, critical_paths
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

    Rows stand in the scenario's order, whichever protocol and seed has been run first. Transfers and pieces of critical
    paths are many, so they are not kept in memory: each run is appended to a file that gets its name when all are done,
    at the end of a ``with`` block.
    """

    scenario: Scenario
    folder: RunFolder
    scratch: Path | None = None
    """A folder for what is appended while it is no table yet; None: the run folder."""
    rounds: dict[int, pd.DataFrame] = field(default_factory=dict)
    links: dict[int, pd.DataFrame] = field(default_factory=dict)
    times: defaultdict[str, dict[int, pd.DataFrame]] = field(default_factory=lambda: defaultdict(dict))
    """Tables of where the time went, by file."""
    groups: dict[int, pd.DataFrame] = field(default_factory=dict)
    device_classes: dict[int, pd.DataFrame] = field(default_factory=dict)
    confusion: dict[int, pd.DataFrame] = field(default_factory=dict)
    summary: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    _appended: dict[str, AppendedTable] = field(default_factory=dict)

    def add(self, position: int, protocol: Protocol, seed: int, world: World, more: Mapping[str, float]) -> None:
        """Measure a world in which *protocol* has ended; *more* are columns of its row in the summary.

        *position* is the place of the protocol on the seed among all of the scenario.
        """
        evaluations = {done.number: done.metrics for done in world.loop.rounds_done}
        chosen = chosen_metrics(self.scenario.evaluate, world.dataset)
        names = [client.name for client in world.clients]
        rounds = rounds_table(world.trace, evaluations, on=self.scenario.evaluate.on, chosen=chosen, clients=names)
        in_flight = world.network.in_flight
        links = links_table(world.trace, in_flight, world.network.links, duration_s=world.env.now)
        first = {"protocol": protocol.title, "seed": seed}
        self.rounds[position] = _with_columns(first, rounds)
        self.links[position] = _with_columns(first, links)
        if last := [metrics for metrics in evaluations.values() if metrics][-1:]:
            self.confusion[position] = _with_columns(first, confusion_table(last[0], counted_classes(world.dataset)))
        pieces = critical_paths(world.trace)
        for name, table in _times(world, pieces, names).items():
            self.times[name][position] = _with_columns(first, table)
        in_words = pieces_table(pieces, world.network.links, names)
        self._append("critical_pieces.parquet", position, _with_columns(first, in_words))
        if len(world.trace.groups):
            self.groups[position] = _with_columns(first, groups_table(world.trace, names))
        if classes := world.loop.device_classes:
            by_class = {done.number: done.by_class for done in world.loop.rounds_done}
            of_classes = device_classes_table(world.trace, by_class, classes, chosen=chosen)
            self.device_classes[position] = _with_columns(first, of_classes)
        if self.scenario.save_transfers:
            transfers = transfers_table(world.trace, in_flight, world.network.links, names)
            self._append("transfers.parquet", position, _with_columns(first, transfers))
        self.summary[position] = [first | row for row in self._summary_rows(protocol, world, rounds, more)]

    def save(self) -> None:
        """Write all tables anew but those that are appended to."""
        rounds = _in_order(self.rounds)
        self.folder.save_table("rounds.parquet", rounds)
        self.folder.save_table("rounds.csv", rounds)
        summary = chain.from_iterable(rows for _, rows in sorted(self.summary.items()))
        self.folder.save_table("summary.csv", pd.DataFrame(summary))
        self.folder.save_table("links.csv", _in_order(self.links))
        for name, tables in self.times.items():
            self.folder.save_table(name, _in_order(tables))
        if self.groups:
            self.folder.save_table("groups.parquet", _in_order(self.groups))
        if self.device_classes:
            self.folder.save_table("device_classes.csv", _in_order(self.device_classes))
        if any(map(len, self.confusion.values())):
            self.folder.save_table("confusion.csv", _in_order(self.confusion))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._close(keep=error is None and self.scratch is None)

    def save_appended(self) -> None:
        """Write what is appended, which was elsewhere so far: nothing more will come."""
        self._close(keep=True)

    def _close(self, *, keep: bool) -> None:
        for table in self._appended.values():
            table.close(keep=keep)
        self._appended.clear()

    def _append(self, name: str, position: int, table: pd.DataFrame) -> None:
        if name not in self._appended:
            self._appended[name] = AppendedTable(self.folder.path / name, self.scratch or self.folder.path)
        self._appended[name].take(position, table)

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


def _in_order(tables: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([table for _, table in sorted(tables.items())], ignore_index=True)


def _times(world: World, pieces: Sequence[Piece], names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """By file: where the time went in *world*, whose rounds are made of *pieces*; *names* are those of its clients."""
    trace, links = world.trace, world.network.links
    return {
        "critical_path.csv": critical_path_table(trace, pieces),
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
