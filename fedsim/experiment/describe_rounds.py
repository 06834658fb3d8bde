"""What a round of a protocol takes: the first ones are simulated on the clock, with nothing learned.

Two rounds tell one that comes before all others (raw samples that are sent once) from those that follow. What the run
takes is then extrapolated, as if all later rounds were like the second; cohorts, losses and faults make them differ.
A protocol whose rounds are not alike is simulated to the end of the run, if that comes within some rounds.

How much is simulated is bounded over all protocols together: what would be too much is said to be unknown.
"""

from __future__ import annotations

import gc
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

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
MOST_PAIRS = 10_000_000
"""Of clients and clusters, when a protocol forms groups by class counts: a million pairs take a second."""
MOST_ROUNDS = 1_000
"""That are simulated of a protocol whose rounds are not alike."""


@dataclass
class _Budget:
    """How many hops may still be simulated, and worlds for it."""

    most: int
    hops: int
    fresh: list[World]

    def rounds(self, hops_per_round: float) -> int:
        """How many rounds may."""
        return max(0, int(self.hops // max(1.0, hops_per_round)))  # a round may have had more hops than were expected


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
    simulated, ``not_simulated`` says so, and there is only one round, or none. *fresh* worlds, at time zero and of
    whatever protocol, are used up before others are built.
    """
    budget = _Budget(most_hops, most_hops, fresh or [])
    return [_facts(scenario, protocol, materials, wires_to_server, budget) for protocol in scenario.protocols]


def _facts(
    scenario: Scenario, protocol: Protocol, materials: Materials, wires_to_server: float, budget: _Budget
) -> dict[str, Any]:
    sensors = len(materials.topology.sensors)
    stop = protocol.stop or scenario.stop
    facts: dict[str, Any] = {
        "protocol": protocol.title,
        "name": protocol.name,
        "mean_cohort": protocol.cohort_size(sensors),
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
    hops_per_round = 2 * (facts["mean_cohort"] or sensors) * (1 + wires_to_server)
    few = min(wanted, budget.rounds(hops_per_round))
    groupable = _groupable_rounds(protocol, sensors)
    if groupable < few:
        few = groupable
        facts["not_simulated"] = (
            f"a run forms groups of {sensors:,} clients by their class counts, and describe does so for at most "
            f"{MOST_PAIRS:,} pairs of clients and clusters; form them at random, or take fewer clients"
        )
    elif few < wanted:
        facts["not_simulated"] = (
            f"the messages of a round lead over about {hops_per_round:,.0f} hops, and describe simulates at most "
            f"{budget.most:,} for all protocols together; more with --most-hops"
        )
    if few == 0:
        return facts
    trace, facts["cut_short"] = _first_rounds(scenario, protocol, materials, Stop(rounds=few), budget)
    budget.hops -= len(trace.hops)
    facts["rounds"] = rounds = _rounds(trace)
    facts["parts"] = _parts(trace)
    if facts["cut_short"] is None and few == wanted:
        if protocol.rounds_are_alike:
            facts["run"] = _run(stop, rounds)
        else:
            most_rounds = min(MOST_ROUNDS, budget.rounds(hops_per_round), groupable)
            facts["run"] = _whole(scenario, protocol, materials, stop, most_rounds, budget)
    return facts


def _first_rounds(
    scenario: Scenario, protocol: Protocol, materials: Materials, few: Stop, budget: _Budget
) -> tuple[Trace, str | None]:
    """What happened in them, and why they ended early, if they did."""
    world = _simulated(scenario, protocol, materials, few, budget)
    trace, cut_short = world.trace, world.loop.cut_short
    del world
    gc.collect()  # it is full of cycles, and the largest ones leave little room for what comes next
    return trace, cut_short


def _parts(trace: Trace) -> dict[str, Any]:
    from fedsim.experiment.describe_parts import part_facts  # pandas comes when the world is gone: it needs room too

    return part_facts(trace)


def _groupable_rounds(protocol: Protocol, sensors: int) -> int:
    """For how many rounds its groups can be formed in seconds: M groups are made of *sensors* / M clusters."""
    if not protocol.groups_by_counts:
        return MOST_ROUNDS
    pairs = np.cumsum(sensors**2 / np.array(protocol.group_numbers(sensors, MOST_ROUNDS)))
    return int(np.searchsorted(pairs, MOST_PAIRS, side="right"))


def _at_most(most: int, rounds: int | None) -> int:
    return most if rounds is None else min(most, rounds)


def _ends_at_accuracy(stop: Stop) -> bool:
    """Whether nothing else ends the run."""
    return stop.rounds is None and stop.sim_time_s is None and stop.transfer_bytes is None


def _whole(
    scenario: Scenario, protocol: Protocol, materials: Materials, stop: Stop, most_rounds: int, budget: _Budget
) -> dict[str, Any] | None:
    """The whole run, simulated; None where its end does not come within so many rounds."""
    if most_rounds < 1:
        return None
    some = stop.model_copy(update={"target_accuracy": None, "rounds": _at_most(most_rounds, stop.rounds)})
    world = _simulated(scenario, protocol, materials, some, budget)
    budget.hops -= len(world.trace.hops)
    done = world.loop.rounds_done
    ends_by = _ended_by(stop, world)
    if ends_by is None:
        return None
    return {
        "ends_by": ends_by,
        "rounds": len(done),
        "seconds": stop.sim_time_s if ends_by == "sim_time_s" else done[-1].sim_time_s,
        "uplink_bytes": done[-1].uplink_bytes if done else 0.0,
        "downlink_bytes": done[-1].downlink_bytes if done else 0.0,
        "may_end_earlier": stop.target_accuracy is not None,
    }


def _ended_by(stop: Stop, world: World) -> str | None:
    """Which of the run's ends it has come to."""
    done = world.loop.rounds_done
    traffic = done[-1].uplink_bytes + done[-1].downlink_bytes if done else 0.0
    if stop.rounds is not None and len(done) == stop.rounds:
        return "rounds"
    if stop.transfer_bytes is not None and traffic >= stop.transfer_bytes:
        return "transfer_bytes"
    return "sim_time_s" if stop.sim_time_s is not None and world.env.now >= stop.sim_time_s else None


def _simulated(scenario: Scenario, protocol: Protocol, materials: Materials, few: Stop, budget: _Budget) -> World:
    short = protocol.model_copy(update={"stop": few})
    if budget.fresh:
        world = seen_by(short, budget.fresh.pop(), scenario)
    else:
        world = build_world(scenario, short, materials, lambda *_: NoLearner())
    simulate(world, short, few)
    return world


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
