"""The memory that a run's clients and server take beside the model, known before anything is trained.

A client's state may be as large as the model, and there may be hundreds of clients: what does not fit is refused before
it runs. Left out: what training itself takes, and the semantics of SCC, which are rows and not models.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from fedsim.errors import UserError
from fedsim.models.table import ModelTable
from fedsim.protocols.combination import Combination
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials
from fedsim.scenario.schema import Scenario
from fedsim.units import si

__all__ = ["Kept", "check_memory", "free_bytes", "kept_by"]

CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")


class Kept(NamedTuple):
    """Bytes in float32, of one protocol."""

    client: float
    """That each client keeps from one training to the next."""
    clients: int
    """How many clients do, at most: those that there are, or that the run's rounds ask."""
    server: float
    """That the server keeps beside the model."""
    update: float
    """Of each update, until all of a round are there."""
    updates: int
    """In a round, at most."""

    @property
    def total(self) -> float:
        """All of that."""
        return self.client * self.clients + self.server + self.update * self.updates


def kept_by(protocol: Protocol, scenario: Scenario, materials: Materials) -> Kept | None:
    """What *protocol* keeps, of the largest of the models that it trains; None where nothing is kept, or not known."""
    if not isinstance(protocol, Combination):
        return None
    clients = len(materials.topology.sensors)
    cohort, exchange, objective, _, server = protocol.parts
    in_round = min(clients, math.ceil(cohort.mean_size(clients)))
    rounds = (protocol.stop or scenario.stop).rounds
    asked = clients if rounds is None else min(clients, rounds * in_round)
    topology = materials.topology
    at_stations = protocol.when().at_stations
    updates = len({topology.cell_of(sensor) for sensor in topology.sensors}) if at_stations else in_round

    if exchange.several_models:
        adapted = {table.digest: materials.table_for(protocol, table) for table in materials.tables}
        tables = [adapted[table.digest] for table in materials.client_tables]
        each = exchange.kept_by_all(tables, in_round) / clients + max(map(objective.kept_bytes, adapted.values()))
        largest = max(adapted.values(), key=lambda table: table.bytes())
        return Kept(each, clients, server.kept_bytes(largest), server.held_bytes(largest), updates)

    def of(table: ModelTable) -> Kept:
        of_client = objective.kept_bytes(table) + exchange.kept_bytes(table)
        return Kept(of_client, asked, server.kept_bytes(table), server.held_bytes(table), updates)

    kept = max(map(of, materials.models_for(protocol, materials.table)), key=lambda one: one.total)
    return kept if kept.total else None


def check_memory(scenario: Scenario, materials: Materials, *, precision: str) -> None:
    """Raise `UserError` when what a protocol keeps is more than the memory that is free here."""
    free = free_bytes()
    if free is None:
        return
    larger = 2 if precision == "float64" else 1
    for protocol in scenario.protocols:
        kept = kept_by(protocol, scenario, materials)
        if kept is None or kept.total * larger <= free:
            continue
        client, server, update, total = (
            si(some * larger, "B") for some in (kept.client, kept.server, kept.update, kept.total)
        )
        told = (
            (f"{kept.clients:,} clients keep {client} each", kept.client),
            (f"the server keeps {server}", kept.server),
            (f"{kept.updates:,} updates of {update} wait for each other", kept.update),
        )
        with scenario.about(*scenario.place_of(protocol)):
            raise UserError(
                f"{protocol.title!r} takes {total} of memory beside its training: "
                f"{', '.join(text for text, some in told if some)}; {si(free, 'B')} are free here, so choose a smaller "
                "model, fewer devices or rounds, or a larger machine"
            )


def free_bytes(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> float | None:
    """The memory that this process may still take, of its machine or its container; None where that is not known."""
    known = []
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
        known.append(1024.0 * float(lines["MemAvailable"].split()[0]))
        most = (cgroup / "memory.max").read_text(encoding="ascii").strip()
        if most != "max":
            known.append(float(most) - float((cgroup / "memory.current").read_text(encoding="ascii")))
    except (OSError, KeyError, ValueError):  # not Linux, or no such container
        pass
    return max(min(known), 0.0) if known else None
