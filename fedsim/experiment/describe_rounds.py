"""What a round of a protocol takes: the first ones are simulated on the clock, with nothing learned.

Two rounds tell one that comes before all others (raw samples that are sent once) from those that follow. What the run
takes is then extrapolated, as if all later rounds were like the second; cohorts, losses and faults make them differ.
A protocol whose rounds are not alike is simulated to the end of the run, if that comes within some rounds.
"""

from __future__ import annotations

import gc
import math
from typing import Any

import numpy as np
import pandas as pd

from fedsim.errors import UserError
from fedsim.experiment.describe_spread import Spread, spread_of
from fedsim.experiment.simulate import simulate
from fedsim.kernel.trace import Outcome, Trace
from fedsim.learning.learner import NoLearner
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.protocols.world import World
from fedsim.scenario.build import Materials, build_world
from fedsim.scenario.schema import Scenario

__all__ = ["round_facts"]

ROUNDS = 2
"""That are simulated, and shown."""
MOST_HOPS = 10_000_000
"""Over which the messages of these rounds go: a hundred thousand devices behind 24 wires each."""
MOST_ROUNDS = 1_000
"""That are simulated of a protocol whose rounds are not alike."""


def round_facts(scenario: Scenario, protocol: Protocol, materials: Materials, wires_to_server: float) -> dict[str, Any]:
    """What a round of *protocol* takes and sends, and an estimate of the whole run.

    *wires_to_server* are those between a base station and the server, in the mean. Raises `UserError` when the first
    rounds lead over more than `MOST_HOPS` hops.
    ``rounds`` is empty for a protocol that decides on what was learned, which cannot be known before.
    """
    sensors = len(materials.topology.sensors)
    stop = protocol.stop or scenario.stop
    facts: dict[str, Any] = {
        "protocol": protocol.title,
        "name": protocol.name,
        "mean_cohort": protocol.cohort_size(sensors),
        "reads_learning": type(protocol).reads_learning,
        "rounds": [],
        "parts": {},
        "cut_short": None,
        "ends_at_accuracy": _ends_at_accuracy(stop),
        "run": None,
    }
    if facts["reads_learning"]:
        return facts
    hops = 2 * _at_most(ROUNDS, stop.rounds) * (facts["mean_cohort"] or sensors) * (1 + wires_to_server)
    if hops > MOST_HOPS:
        with scenario.about(*scenario.place_of(protocol)):
            raise UserError(
                f"the messages of its first rounds lead over about {hops:,.0f} hops, and describe simulates at most "
                f"{MOST_HOPS:,}; let fewer clients take part, or choose a topology with shorter ways"
            )
    world = _simulated(scenario, protocol, materials, Stop(rounds=_at_most(ROUNDS, stop.rounds)))
    facts["cut_short"] = world.loop.cut_short
    facts["rounds"] = rounds = _rounds(world.trace)
    facts["parts"] = _parts(world.trace)
    cut_short = world.loop.cut_short
    del world
    gc.collect()  # before the next one is built: a world is full of cycles
    if cut_short is None:
        facts["run"] = _run(stop, rounds) if protocol.rounds_are_alike else _whole(scenario, protocol, materials, stop)
    return facts


def _at_most(most: int, rounds: int | None) -> int:
    return most if rounds is None else min(most, rounds)


def _ends_at_accuracy(stop: Stop) -> bool:
    """Whether nothing else ends the run."""
    return stop.rounds is None and stop.sim_time_s is None and stop.transfer_bytes is None


def _whole(scenario: Scenario, protocol: Protocol, materials: Materials, stop: Stop) -> dict[str, Any] | None:
    """The whole run, simulated; None where its end does not come within `MOST_ROUNDS`."""
    some = stop.model_copy(update={"target_accuracy": None, "rounds": _at_most(MOST_ROUNDS, stop.rounds)})
    world = _simulated(scenario, protocol, materials, some)
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


def _simulated(scenario: Scenario, protocol: Protocol, materials: Materials, few: Stop) -> World:
    short = protocol.model_copy(update={"stop": few})
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


def _parts(trace: Trace) -> dict[str, Spread | None]:
    """What one device's part in a round consists of: what went through in the simulated rounds, over all devices.

    The way of a message leads over the air and the wires, with all waiting; ``airtime`` is of it what the message had
    the air for, and ``air_queue`` how long it waited for that.
    """
    hops = pd.DataFrame(trace.hops.array())
    work = pd.DataFrame(trace.work.array())
    hops = hops[(hops["outcome"] == Outcome.ARRIVED) & (hops["client"] >= 0)]
    work = work[work["outcome"] == Outcome.ARRIVED]
    parts: dict[str, Spread | None] = {
        "wait_for_samples_s": None,
        "compute_s": spread_of(work["end_s"] - work["start_s"]),
    }
    ways = {}
    for way, is_up in (("download", False), ("upload", True)):
        some = hops[hops["uplink"] == is_up]
        messages = some.groupby("transfer", sort=False).agg(
            client=("client", "first"), start_s=("start_s", "min"), end_s=("end_s", "max"), over_air=("access", "any")
        )
        ways[way] = messages[messages["over_air"]]
        air = some[some["access"]]
        parts[f"{way}_s"] = spread_of(ways[way]["end_s"] - ways[way]["start_s"])
        parts[f"{way}_airtime_s"] = spread_of(air["airtime_s"])
        parts[f"{way}_air_queue_s"] = spread_of(air["queued_s"])
    waits = _waits(work, ways["download"])
    parts["wait_for_samples_s"] = spread_of(waits) if waits.any() else None
    return parts


def _waits(work: pd.DataFrame, downloads: pd.DataFrame) -> np.ndarray:
    """Seconds between the model's arrival and the beginning of the work on it."""
    begun = work.sort_values("start_s", kind="stable").astype({"client": "int64"})
    there = downloads.sort_values("end_s", kind="stable").astype({"client": "int64"})
    matched = pd.merge_asof(
        begun[["client", "start_s"]],
        there[["client", "end_s"]].rename(columns={"end_s": "arrived_s"}),
        left_on="start_s",
        right_on="arrived_s",
        by="client",
    ).dropna()
    waits: np.ndarray = (matched["start_s"] - matched["arrived_s"]).to_numpy()
    return waits


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
