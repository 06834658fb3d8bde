"""The tables of a run folder, growing by one protocol on one seed at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from fedsim.experiment.run_folder import RunFolder
from fedsim.metrics.cost_models.settings import RunFacts
from fedsim.metrics.summary import event_row, formula_row
from fedsim.metrics.tables import links_table, rounds_table, transfers_table
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.world import World
from fedsim.scenario.schema import Scenario

__all__ = ["ResultTables"]


@dataclass
class ResultTables:
    """Rounds, transfers, links and summary of what has been run so far."""

    scenario: Scenario
    rounds: list[pd.DataFrame] = field(default_factory=list)
    transfers: list[pd.DataFrame] = field(default_factory=list)
    links: list[pd.DataFrame] = field(default_factory=list)
    summary: list[dict[str, Any]] = field(default_factory=list)

    def add(self, protocol: Protocol, seed: int, world: World) -> None:
        """Measure a world in which *protocol* has ended."""
        evaluations = {done.number: done.metrics for done in world.loop.rounds_done}
        rounds = rounds_table(world.trace, evaluations, on=self.scenario.evaluate.on)
        transfers = transfers_table(
            world.trace,
            list(world.network.in_flight),
            world.network.links,
            [client.name for client in world.clients],
        )
        links = links_table(transfers, world.network.links, duration_s=world.env.now)
        first = {"protocol": protocol.title, "seed": seed}
        self.rounds.append(_with_columns(first, rounds))
        self.links.append(_with_columns(first, links))
        if self.scenario.save_transfers:
            self.transfers.append(_with_columns(first, transfers))
        self.summary += [first | row for row in self._summary_rows(protocol, world, rounds)]

    def save(self, folder: RunFolder) -> None:
        """Write all tables anew."""
        rounds = pd.concat(self.rounds, ignore_index=True)
        folder.save_table("rounds.parquet", rounds)
        folder.save_table("rounds.csv", rounds)
        folder.save_table("summary.csv", pd.DataFrame(self.summary))
        folder.save_table("links.csv", pd.concat(self.links, ignore_index=True))
        if self.scenario.save_transfers:
            folder.save_table("transfers.parquet", pd.concat(self.transfers, ignore_index=True))

    def _summary_rows(self, protocol: Protocol, world: World, rounds: pd.DataFrame) -> Sequence[dict[str, Any]]:
        event = event_row(rounds, (protocol.stop or self.scenario.stop).target_accuracy)
        rows = {"event": event}
        cohort = protocol.cohort_size(len(world.clients))
        if self.scenario.formula is not None and cohort is not None:
            facts = RunFacts(len(world.clients), cohort, len(rounds), world.model.bytes())
            rows["formula"] = formula_row(event, self.scenario.formula.cost(facts))
        return [rows[accounting] for accounting in self.scenario.accounting]


def _with_columns(first: dict[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    """*table* behind constant columns."""
    return pd.concat([pd.DataFrame(first, index=table.index), table], axis="columns")
