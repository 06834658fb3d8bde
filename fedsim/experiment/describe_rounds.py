"""What a round of a protocol takes: the first ones are simulated on the clock, with nothing learned.

Two rounds tell one that comes before all others (raw samples that are sent once) from those that follow. What the run
takes is then extrapolated, as if all later rounds were like the second; cohorts, losses and faults make them differ.
A protocol whose rounds are not alike is simulated to the end of the run, if that comes within some rounds, and after
the first rounds of all protocols.

How much is simulated is bounded over all protocols together: what would be too much is said to be unknown.
"""

from __future__ import annotations

import gc
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.experiment.describe_parts import part_facts
from fedsim.experiment.simulate import simulate
from fedsim.experiment.validate import seen_by
from fedsim.kernel.trace import Trace
from fedsim.learning.learner import NoLearner
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.protocols.world import World
from fedsim.scenario.build import Materials, build_world
from fedsim.scenario.schema import Scenario

__all__ = ["MOST_HOPS", "protocol_facts"]

ROUNDS = 2
"""That are simulated, and shown."""
MOST_HOPS = 500_000
"""Over which the messages of all protocols go together: a round of a hundred thousand devices in a star has 400,000."""
WORLD_HOPS, NODE_HOPS = 100, 3
"""A world takes as long to build as so many hops to simulate, and as so many for each of its nodes."""
LARGE_NODES, LARGE_NODE_HOPS = 100_000, 2
"""A network of more nodes has taken as long before as so many hops for each further one."""
PAIRS_PER_HOP = 3
"""Of clients and clusters, when groups are formed by class counts: some take 1 us, some 5, and a hop 10."""
MOST_ROUNDS = 1_000
"""That are simulated of a protocol whose rounds are not alike."""
MOST_LEFT_BEHIND = 20_000
"""Clients and hops of worlds that are over: those are full of cycles, and large ones leave little room for others."""


@dataclass
class _Simulations:
    """Of one scenario: what is left of as many hops as may be simulated, and worlds for it."""

    scenario: Scenario
    materials: Materials
    wires_to_server: float
    most: int
    left: float
    fresh: list[World]
    _left_behind: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.left -= self._large_hops

    def affordable_rounds(self, protocol: Protocol, most: int) -> int:
        """How many rounds may be simulated, of the first *most*, in a world of their own."""
        hops = np.cumsum(self._message_hops(protocol, most) + self._grouping_hops(protocol, most))
        return int(np.searchsorted(hops, self.left - self._world_hops, side="right"))

    def why_not(self, protocol: Protocol) -> str:
        """That a round is too much."""
        hops = float(self._message_hops(protocol, 1)[0])
        extras = {
            "forming its groups": self._grouping_hops(protocol, 1)[0],
            "building its network": self._world_hops,
            "so large a network": self._large_hops,
        }
        counted = "".join(f", {what} counts as {extra:,.0f}" for what, extra in extras.items() if extra)
        return f"the messages of a round lead over about {hops:,.0f} hops{counted}, and {self._limit}"

    def why_not_all(self, rounds: int) -> str:
        """That a run of more than so many *rounds* is too much."""
        return f"the run has more than {rounds:,} rounds, and {self._limit}"

    def simulated(self, protocol: Protocol, few: Stop, most_rounds: int) -> World:
        """A world in which *few* rounds have happened, at most *most_rounds* of them."""
        self.left -= self._world_hops
        short = protocol.model_copy(update={"stop": few})
        if self.fresh:
            world = seen_by(short, self.fresh.pop(), self.scenario)
        else:
            world = build_world(self.scenario, short, self.materials, lambda *_: NoLearner())
        simulate(world, short, few)
        begun = min(len(world.loop.rounds_done) + 1, most_rounds)
        self.left -= len(world.trace.hops) + float(self._grouping_hops(protocol, begun).sum())
        self._left_behind += len(world.clients) + len(world.trace.hops)
        return world

    def sweep(self) -> None:
        """Give back the memory of worlds that are over, once it is some."""
        if self._left_behind > MOST_LEFT_BEHIND:
            gc.collect()
            self._left_behind = 0

    @property
    def _limit(self) -> str:
        return f"describe simulates at most {self.most:,} for all protocols together; more with --most-hops"

    @property
    def _world_hops(self) -> int:
        return 0 if self.fresh else WORLD_HOPS + NODE_HOPS * len(self.materials.topology.graph)

    @property
    def _large_hops(self) -> int:
        return LARGE_NODE_HOPS * max(0, len(self.materials.topology.graph) - LARGE_NODES)

    def _message_hops(self, protocol: Protocol, rounds: int) -> NDArray[np.float64]:
        """Of each of so many rounds."""
        sensors = len(self.materials.topology.sensors)
        models = 2 * (protocol.cohort_size(sensors) or sensors)
        reports = sensors * (np.array(protocol.groups_by_counts(sensors, rounds)) > 0)
        hops: NDArray[np.float64] = np.maximum((models + reports) * (1 + self.wires_to_server), 1.0)
        return hops

    def _grouping_hops(self, protocol: Protocol, rounds: int) -> NDArray[np.float64]:
        """The same, of what it takes to form groups: M groups are made of *sensors* / M clusters."""
        sensors = len(self.materials.topology.sensors)
        groups = np.array(protocol.groups_by_counts(sensors, rounds), np.float64)
        groups[groups == 0] = np.inf
        hops: NDArray[np.float64] = sensors**2 / groups / PAIRS_PER_HOP
        return hops


def protocol_facts(
    scenario: Scenario,
    materials: Materials,
    wires_to_server: float,
    most_hops: int = MOST_HOPS,
    fresh: list[World] | None = None,
) -> list[dict[str, Any]]:
    """What a round of each protocol takes and sends, and an estimate of the whole run.

    *wires_to_server* are those between a base station and the server, in the mean. ``rounds`` is empty for a protocol
    that decides on what was learned, which cannot be known before. Where messages lead over more hops than may still be
    simulated, ``not_simulated`` says so, and there is only one round, or none, or no estimate. *fresh* worlds, at time
    zero and of whatever protocol, are used up before others are built.
    """
    simulations = _Simulations(scenario, materials, wires_to_server, most_hops, most_hops, fresh or [])
    facts = [_facts(protocol, simulations) for protocol in scenario.protocols]
    for protocol, of_protocol in zip(scenario.protocols, facts, strict=True):
        if of_protocol["rounds"] and of_protocol["cut_short"] is None and of_protocol["not_simulated"] is None:
            if protocol.rounds_are_alike:
                of_protocol["run"] = _run(protocol.stop or scenario.stop, of_protocol["rounds"])
            else:
                of_protocol |= _whole(protocol, simulations)
                simulations.sweep()
    return facts


def _facts(protocol: Protocol, simulations: _Simulations) -> dict[str, Any]:
    """Those of the first rounds."""
    stop = protocol.stop or simulations.scenario.stop
    facts: dict[str, Any] = {
        "protocol": protocol.title,
        "name": protocol.name,
        "mean_cohort": protocol.cohort_size(len(simulations.materials.topology.sensors)),
        "reads_learning": type(protocol).reads_learning,
        "rounds": [],
        "parts": {},
        "not_simulated": None,
        "cut_short": None,
        "ends_at_accuracy": _ends_at_accuracy(stop),
        "run": None,
    }
    if facts["reads_learning"]:
        return facts
    wanted = _at_most(ROUNDS, stop.rounds)
    few = simulations.affordable_rounds(protocol, wanted)
    if few < wanted:
        facts["not_simulated"] = simulations.why_not(protocol)
    if few > 0:
        world = simulations.simulated(protocol, Stop(rounds=few), few)
        trace, facts["cut_short"] = world.trace, world.loop.cut_short
        del world
        simulations.sweep()  # tables of what happened need room too
        facts["rounds"] = _rounds(trace)
        facts["parts"] = part_facts(trace)
    return facts


def _at_most(most: int, rounds: int | None) -> int:
    return most if rounds is None else min(most, rounds)


def _ends_at_accuracy(stop: Stop) -> bool:
    """Whether nothing else ends the run."""
    return stop.rounds is None and stop.sim_time_s is None and stop.transfer_bytes is None


def _whole(protocol: Protocol, simulations: _Simulations) -> dict[str, Any]:
    """The whole run, simulated, or why not; no estimate where its end does not come within `MOST_ROUNDS`."""
    stop = protocol.stop or simulations.scenario.stop
    if _ends_at_accuracy(stop):
        return {}
    affordable = simulations.affordable_rounds(protocol, MOST_ROUNDS)
    too_much = {} if affordable == MOST_ROUNDS else {"not_simulated": simulations.why_not_all(affordable)}
    only_rounds_end_it = stop.sim_time_s is None and stop.transfer_bytes is None
    if affordable == 0 or (only_rounds_end_it and affordable < (stop.rounds or 0)):
        return too_much
    most_rounds = _at_most(affordable, stop.rounds)
    some = stop.model_copy(update={"target_accuracy": None, "rounds": most_rounds})
    world = simulations.simulated(protocol, some, most_rounds)
    done = world.loop.rounds_done
    ends_by = _ended_by(stop, world)
    if ends_by is None:
        return {} if world.loop.cut_short else too_much
    run = {
        "ends_by": ends_by,
        "rounds": len(done),
        "seconds": stop.sim_time_s if ends_by == "sim_time_s" else done[-1].sim_time_s,
        "uplink_bytes": done[-1].uplink_bytes if done else 0.0,
        "downlink_bytes": done[-1].downlink_bytes if done else 0.0,
        "may_end_earlier": stop.target_accuracy is not None,
    }
    return {"run": run}


def _ended_by(stop: Stop, world: World) -> str | None:
    """Which of the run's ends it has come to."""
    done = world.loop.rounds_done
    traffic = done[-1].uplink_bytes + done[-1].downlink_bytes if done else 0.0
    if stop.rounds is not None and len(done) == stop.rounds:
        return "rounds"
    if stop.transfer_bytes is not None and traffic >= stop.transfer_bytes:
        return "transfer_bytes"
    return "sim_time_s" if stop.sim_time_s is not None and world.env.now >= stop.sim_time_s else None


def _rounds(trace: Trace) -> list[dict[str, Any]]:
    """Time, clients and traffic of each round that ended; ``..._bytes_per_client`` is of those who sent or were sent
    anything in that direction, and, where anybody was sent something, were sent something."""
    rounds, hops = trace.rounds.array(), trace.hops
    put_bytes, up, client = (hops.column(name) for name in ("bytes", "uplink", "client"))
    ways = {"uplink": hops.column("access") & up, "downlink": hops.column("access") & ~up}
    ends = rounds["hops"].tolist()
    facts = []
    for row, first, last in zip(rounds, [0, *ends], ends, strict=False):
        fact: dict[str, Any] = {"seconds": float(row["end_s"] - row["start_s"])}
        fact |= {name: int(row[name]) for name in ("selected", "participants", "lost", "late")}
        here = {way: np.flatnonzero(on_it[first:last]) + first for way, on_it in ways.items()}
        received = np.unique(client[here["downlink"]])
        for way, rows in here.items():
            fact[f"{way}_bytes"] = float(put_bytes[rows].sum())
            if len(received):  # not who only reports
                rows = rows[np.isin(client[rows], received)]
            clients = len(np.unique(client[rows]))
            fact[f"{way}_bytes_per_client"] = float(put_bytes[rows].sum()) / clients if clients else 0.0
        facts.append(fact)
    return facts


def _run(stop: Stop, rounds: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The whole run, as if all later rounds were like the last one simulated; None where its end cannot be told."""
    if not rounds:
        return None
    first, later = rounds[0], rounds[-1]

    def after(count: float, key: str) -> float:
        return float(first[key] + (count - 1) * later[key])

    def traffic(count: float) -> float:
        return after(count, "uplink_bytes") + after(count, "downlink_bytes")

    ends = {"rounds": math.inf if stop.rounds is None else float(stop.rounds)}
    if stop.sim_time_s is not None:
        ends["sim_time_s"] = _rounds_within(stop.sim_time_s, first["seconds"], later["seconds"])
    if stop.transfer_bytes is not None:
        grows = later["uplink_bytes"] + later["downlink_bytes"]
        ends["transfer_bytes"] = _rounds_until(stop.transfer_bytes, traffic(1), grows)
    by = min(ends, key=ends.__getitem__)
    count = ends[by]
    if not math.isfinite(count):
        return None
    return {
        "ends_by": by,
        "rounds": int(count),
        "seconds": stop.sim_time_s if by == "sim_time_s" else after(count, "seconds"),
        "uplink_bytes": after(count, "uplink_bytes") if count else 0.0,
        "downlink_bytes": after(count, "downlink_bytes") if count else 0.0,
        "may_end_earlier": stop.target_accuracy is not None,
    }


def _rounds_within(seconds: float, first_s: float, later_s: float) -> float:
    """Rounds that end in so many seconds."""
    if seconds < first_s:
        return 0.0
    return 1.0 + math.floor((seconds - first_s) / later_s) if later_s > 0 else math.inf


def _rounds_until(most: float, first: float, later: float) -> float:
    """Rounds after which it is no less than *most*."""
    if first >= most:
        return 1.0
    return 1.0 + math.ceil((most - first) / later) if later > 0 else math.inf
