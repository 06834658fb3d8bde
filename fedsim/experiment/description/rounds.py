"""What a round of a protocol takes: the first ones are simulated on the clock, with nothing learned.

Two rounds tell one that comes before all others (raw samples that are sent once) from those that follow. What the run
takes is then extrapolated, as if all later rounds were like the second; cohorts, losses and faults make them differ.
A protocol whose rounds are not alike is simulated to the end of the run, if that comes within some rounds, and after
the first rounds of all protocols.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.experiment.description.common_layers import common_layer_facts
from fedsim.experiment.description.simulations import MOST_HOPS, Simulations
from fedsim.experiment.description.spread import Spread, spread_of
from fedsim.experiment.host import cores
from fedsim.experiment.memory import kept_by, peak_of
from fedsim.kernel.trace import Outcome, Trace
from fedsim.learning.executors.choice import AUTO, choose
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.protocols.world import World
from fedsim.scenario.build import Materials
from fedsim.scenario.closed_forms import closed_form
from fedsim.scenario.schema import Scenario

__all__ = ["part_facts", "protocol_facts"]

ROUNDS = 2
"""That are simulated, and shown."""
MOST_ROUNDS = 1_000
"""That are simulated of a protocol whose rounds are not alike."""


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
    simulations = Simulations(scenario, materials, wires_to_server, most_hops, most_hops, fresh or [])
    facts = [_facts(protocol, simulations) for protocol in scenario.protocols]
    for protocol, of_protocol in zip(scenario.protocols, facts, strict=True):
        if of_protocol["rounds"] and of_protocol["cut_short"] is None and of_protocol["not_simulated"] is None:
            if protocol.rounds_are_alike and not simulations.some_rounds_finetune:
                of_protocol["run"] = _run(protocol.stop or scenario.stop, of_protocol["rounds"])
            else:
                of_protocol |= _whole(protocol, simulations)
                simulations.sweep()
    return facts


def _facts(protocol: Protocol, simulations: Simulations) -> dict[str, Any]:
    """Those of the first rounds."""
    stop, form = protocol.stop or simulations.scenario.stop, closed_form(protocol)
    sensors, newcomers = len(simulations.materials.topology.sensors), simulations.scenario.newcomers
    kept_out = newcomers.clients if newcomers else 0
    facts: dict[str, Any] = {
        "protocol": protocol.title,
        "name": protocol.name,
        "mean_cohort": None if form is None else min(form.mean_cohort(sensors), sensors - kept_out),
        "reads_learning": protocol.needs_learning,
        "measured_size": ".".join(protocol.measured_size) or None,
        "kept": _kept(protocol, simulations),
        "peak_memory": _peaks(protocol, simulations),
        "common_layers": common_layer_facts(protocol, simulations.materials),
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


def _kept(protocol: Protocol, simulations: Simulations) -> dict[str, float] | None:
    """The memory that what is learned takes beside the model."""
    materials = simulations.materials
    kept = kept_by(protocol, simulations.scenario, materials)
    return None if kept is None else {**kept._asdict(), "total": kept.total}


def _peaks(protocol: Protocol, simulations: Simulations) -> list[dict[str, float]]:
    """The memory of a run at its peak, with one worker and with one for each core; empty where it is not known."""
    scenario, materials = simulations.scenario, simulations.materials
    if not scenario.learn or not all(table.trainable for table in materials.tables):
        return []
    executor = choose(AUTO, materials.tables, "cpu").name
    peaks = (
        peak_of(protocol, scenario, materials, executor=executor, workers=workers) for workers in sorted({1, cores()})
    )
    return [{**peak._asdict(), "total": peak.total} for peak in peaks if peak is not None]


def _at_most(most: int, rounds: int | None) -> int:
    return most if rounds is None else min(most, rounds)


def _ends_at_accuracy(stop: Stop) -> bool:
    """Whether nothing else ends the run."""
    return stop.rounds is None and stop.sim_time_s is None and stop.transfer_bytes is None


def _whole(protocol: Protocol, simulations: Simulations) -> dict[str, Any]:
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
    first, later = rounds[0], rounds[-1]

    def after(count: float, key: str) -> float:
        return float(first[key] + (count - 1) * later[key])

    ends = {"rounds": math.inf if stop.rounds is None else float(stop.rounds)}
    if stop.sim_time_s is not None:
        ends["sim_time_s"] = _rounds_within(stop.sim_time_s, first["seconds"], later["seconds"])
    if stop.transfer_bytes is not None:
        begins, grows = (one["uplink_bytes"] + one["downlink_bytes"] for one in (first, later))
        ends["transfer_bytes"] = _rounds_until(stop.transfer_bytes, begins, grows)
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


Columns = dict[str, NDArray[Any]]


def part_facts(trace: Trace) -> dict[str, Spread | None]:
    """What one device's part in a round consists of: what went through in the simulated rounds, over all devices.

    The way of a message leads over the air and the wires, with all waiting; ``airtime`` is of it what the message had
    the air for, and ``air_queue`` how long it waited for that.
    """
    work = trace.work.array()
    work = work[work["outcome"] == Outcome.ARRIVED]
    hops = {name: trace.hops.column(name) for name in ("client", "outcome", "uplink")}
    arrived = (hops["outcome"] == Outcome.ARRIVED) & (hops["client"] >= 0)
    parts: dict[str, Spread | None] = {
        "wait_for_samples_s": None,
        "compute_s": spread_of(work["end_s"] - work["start_s"]),
    }
    messages: dict[str, Columns] = {}
    for way, is_up in (("download", False), ("upload", True)):
        rows = np.flatnonzero(arrived & (hops["uplink"] == is_up))
        messages[way] = _over_air(trace, rows)
        parts[f"{way}_s"] = spread_of(messages[way]["end_s"] - messages[way]["start_s"])
        air = rows[trace.hops.column("access")[rows]]
        parts[f"{way}_airtime_s"] = spread_of(trace.hops.column("airtime_s")[air])
        parts[f"{way}_air_queue_s"] = spread_of(trace.hops.column("queued_s")[air])
    waits = _waits(work, messages["download"])
    parts["wait_for_samples_s"] = spread_of(waits) if waits.any() else None
    return parts


def _over_air(trace: Trace, rows: NDArray[np.int64]) -> Columns:
    """Of the messages whose hops are *rows*, those that went over the air: whose they are, their beginning and end."""
    transfer = trace.hops.column("transfer")[rows]
    order = np.argsort(transfer, kind="stable")
    rows, transfer = rows[order], transfer[order]
    firsts = np.flatnonzero(np.diff(transfer, prepend=-1))
    if not len(firsts):
        return {name: np.empty(0) for name in ("client", "start_s", "end_s")}
    over_air = np.logical_or.reduceat(trace.hops.column("access")[rows], firsts)
    return {
        "client": trace.hops.column("client")[rows[firsts]][over_air],
        "start_s": np.minimum.reduceat(trace.hops.column("start_s")[rows], firsts)[over_air],
        "end_s": np.maximum.reduceat(trace.hops.column("end_s")[rows], firsts)[over_air],
    }


def _waits(work: NDArray[np.void], downloads: Columns) -> NDArray[np.float64]:
    """Seconds between the model's arrival and the beginning of the work on it; not of work without a model."""
    arrivals = len(downloads["client"])
    clients = np.concatenate([downloads["client"], work["client"]])
    times = np.concatenate([downloads["end_s"], work["start_s"]])
    is_work = np.arange(len(times)) >= arrivals
    order = np.lexsort((is_work, times, clients))  # what arrives in the instant in which work begins was there
    places = np.arange(len(order))
    latest = order[np.maximum.accumulate(np.where(is_work[order], 0, places))]
    matched = is_work[order] & (latest < arrivals) & (clients[latest] == clients[order])
    waits: NDArray[np.float64] = times[order[matched]] - times[latest[matched]]
    return waits
