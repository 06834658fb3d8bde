"""Law 6 on the clock: what must scale, what must not change, and what must be the same thing twice."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grouped_protocols import GROUPED, LABELLED
from small_worlds import EVERYTHING_HAPPENS, NO_TIME, RING, scenario, simulated

from fedsim.kernel.trace import Outcome, Trace
from fedsim.protocols.world import World
from fedsim.settings import LARGEST
from fedsim.topology.explicit import to_explicit

FEDAVG = EVERYTHING_HAPPENS["protocols"][0]
LATE = ["finish", "cancel"]
BUSY = ["skip", "abort"]


def same(one: Trace, other: Trace) -> bool:
    """Whether two traces are equal, row by row and by their digests."""
    rows = all(np.array_equal(one.tables[name].array(), other.tables[name].array()) for name in one.tables)
    assert rows is (one.digest() == other.digest())
    return rows


def halved(part: Any) -> Any:
    """With half of every number whose name says that it is one of seconds."""
    if isinstance(part, dict):
        return {key: value / 2 if key.endswith("_s") else halved(value) for key, value in part.items()}
    return list(map(halved, part)) if isinstance(part, list) else part


def twice_as_fast(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The same scenario with all rates and speeds doubled, and all fixed times halved."""
    data = copy.deepcopy(dict(changes))
    if "network.cell.radio" in data:
        data["network.cell.radio"]["path"] = data["network.cell.radio"]["path"].replace("slow", "fast")
    else:
        data["network.cell.radio"] = {"name": "fixed", "uplink_bps": 2_000, "downlink_bps": 4_000}
    if "faults" in data:
        data["faults"] = halved(data["faults"])
    data["network.cell.delay_s"] /= 2
    data["network.link"]["rate_bps"] *= 2
    data["network.link"]["delay_s"] /= 2
    compute = data["devices.classes.sensor.compute"]
    for key, factor in (("mean_seconds_per_sample", 0.5), ("seconds_per_sample", 0.5), ("flops_per_s", 2)):
        if key in compute:
            compute[key] *= factor
    data["devices.aggregation_s"] /= 2
    for protocol in data["protocols"]:
        for key in {"deadline_s", "turn_s", "grouping_s"} & protocol.keys():
            protocol[key] /= 2
    if "sim_time_s" in data["stop"]:
        data["stop"]["sim_time_s"] /= 2
    if "data.stream" in data:
        stream = data["data.stream"]
        stream["arrival"]["samples_per_s"] *= 2
        stream["drift"]["lengths_s"] = [length_s / 2 for length_s in stream["drift"]["lengths_s"]]
    return data


COMPUTES = {
    "distribution": EVERYTHING_HAPPENS["devices.classes.sensor.compute"],
    "per_sample": {"name": "per_sample", "seconds_per_sample": 0.7},
    "flops": {"name": "flops", "flops_per_s": 3e6},
}


@pytest.mark.parametrize("compute", COMPUTES.values(), ids=COMPUTES)
@pytest.mark.parametrize("late_transfers", LATE)
@pytest.mark.parametrize("stop", [{"rounds": 8}, {"sim_time_s": 200.0}], ids=["rounds", "time"])
def test_twice_as_fast_takes_exactly_half_the_time(
    compute: dict[str, Any], late_transfers: str, stop: dict[str, Any]
) -> None:
    changes = EVERYTHING_HAPPENS | {
        "stop": stop,
        "network.late_transfers": late_transfers,
        "devices.classes.sensor.compute": compute,
        "model.training_flops_per_sample": 1e6,
    }
    assert_exactly_half(simulated(changes), simulated(twice_as_fast(changes)))


@pytest.mark.parametrize("late_transfers", LATE)
@pytest.mark.parametrize("protocol", GROUPED.values(), ids=GROUPED)
def test_so_it_does_in_groups_and_in_parts(protocol: dict[str, Any], late_transfers: str) -> None:
    changes = (
        EVERYTHING_HAPPENS
        | LABELLED
        | {"network.late_transfers": late_transfers, "faults": FAULTS | {"device_memory": "lost"}}
        | {"protocols": [protocol], "stop": {"rounds": 9}}
    )
    slow = simulated(changes)
    assert_exactly_half(slow, simulated(twice_as_fast(changes)))
    rounds = slow.trace.rounds.array()
    assert rounds["participants"].any() and rounds["lost"].any()
    assert (rounds["participants"] + rounds["lost"] + rounds["late"] == rounds["selected"]).all()


STREAM = {
    "samples": 7,
    "arrival": {"samples_per_s": 0.3, "buffer_samples": 9, "buffered_at_start": 2},
    "drift": {"name": "shifts", "lengths_s": [31.0, 53.0]},
}


def test_so_it_does_where_samples_arrive_by_the_clock() -> None:
    changes = EVERYTHING_HAPPENS | {"data.stream": STREAM}
    slow, fast = simulated(changes), simulated(twice_as_fast(changes))
    assert_exactly_half(slow, fast)
    seen = [[(one.stream.consumed, one.stream.missed) for one in world.clients] for world in (slow, fast)]
    assert seen[0] == seen[1]
    assert any(missed for _, missed in seen[0])


def assert_exactly_half(slow: World, fast: World) -> None:
    """Every time of *fast* is half that of *slow*, to the last bit, and nothing else differs."""
    assert fast.env.now == slow.env.now / 2
    for name, table in slow.trace.tables.items():
        before, after = table.array(), fast.trace.tables[name].array()
        assert len(before) == len(after) and (len(before) > 0 or name in ("groups", "station_messages"))
        for column in before.dtype.names:
            factor = 2 if column.endswith("_s") else 1
            assert np.array_equal(before[column], after[column] * factor), (name, column)


FAIR = {"name": "fair", "weights": {"sensor": 2.0}}
HALF_DUPLEX = {"network.cell.duplex": "full", "devices.classes.sensor.duplex": "half"}
"""Where devices take turns, rather than whole cells."""
FAULTS = {
    "scheduled": [
        {"node": "factory-1/station-1", "at_s": 3.7, "for_s": 2.3, "every_s": 17.1},
        {"link": ["cloud", "factory-2/edge"], "at_s": 9.1, "for_s": 5.3},
        {"node": "factory-2/sensor-1", "at_s": 41.0, "for_s": 11.0},
    ],
    "random": [
        {"of": kind, "mean_up_s": 70.0, "mean_down_s": 6.0}
        for kind in ("sensors", "base_stations", "edges", "clouds", "wires")
    ],
}


@pytest.fixture
def trace_of_rates(tmp_path: Path) -> dict[str, Any]:
    """A radio with rates that change every few seconds, and are 0 at times; beside it, the same twice as fast."""
    for name, factor in (("slow.csv", 1.0), ("fast.csv", 2.0)):
        rng = np.random.default_rng(3)
        rows = ["time_s,device,uplink_bps,downlink_bps", "0,*,1000,2000" if factor == 1 else "0,*,2000,4000"]
        for sensor in (f"factory-{factory}/sensor-{number}" for factory in (1, 2) for number in range(1, 5)):
            times_s = [0.0, *np.cumsum(rng.exponential(9.0, 60)).tolist()]
            for at_s in times_s:
                up_bps, down_bps = rng.choice([0.0, 300.0, 1_000.0, 5_000.0], 2, p=[0.1, 0.3, 0.4, 0.2]).tolist()
                rows.append(f"{at_s / factor!r},{sensor},{up_bps * factor!r},{down_bps * factor!r}")
        (tmp_path / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return {"network.cell.radio": {"name": "trace", "path": str(tmp_path / "slow.csv"), "repeat_every_s": 1e6}}


@pytest.mark.parametrize("routing", ["fixed", "around_outages"])
@pytest.mark.parametrize("messages", ["wait", "restart", "lose"])
@pytest.mark.parametrize("discipline", [{"name": "serial"}, {"name": "dedicated"}, FAIR], ids=lambda one: one["name"])
def test_so_it_does_where_things_fail_and_rates_change(
    discipline: dict[str, Any], messages: str, routing: str, trace_of_rates: dict[str, Any]
) -> None:
    changes = (
        EVERYTHING_HAPPENS
        | trace_of_rates
        | {
            "network.cell.discipline": discipline,
            "network.link": EVERYTHING_HAPPENS["network.link"] | {"discipline": {"name": discipline["name"]}},
            "faults": FAULTS | {"messages": messages, "routing": routing},
            "stop": {"sim_time_s": 300.0},
        }
        | (HALF_DUPLEX if routing == "around_outages" else {})
    )
    slow = simulated(changes)
    assert_exactly_half(slow, simulated(twice_as_fast(changes)))
    outcomes = set(slow.trace.hops.array()["outcome"])
    assert {Outcome.ARRIVED, Outcome.LOST} <= outcomes
    assert not same(slow.trace, simulated({**changes, "faults": {}}).trace)
    assert not same(slow.trace, simulated({key: changes[key] for key in changes if key != "network.cell.radio"}).trace)


def with_names(part: Any, names: Mapping[str, str]) -> Any:
    """A part of a scenario in which nodes have other names."""
    if isinstance(part, dict):
        return {
            names.get(key, key): value if key == "kind" else with_names(value, names) for key, value in part.items()
        }
    if isinstance(part, list):
        return [with_names(one, names) for one in part]
    return names.get(part, part) if isinstance(part, str) else part


@pytest.mark.parametrize("faults", [{}, FAULTS], ids=["calm", "failing"])
@pytest.mark.parametrize("busy", BUSY)
def test_names_of_clients_change_nothing(busy: str, faults: dict[str, Any]) -> None:
    assert_names_change_nothing({"protocols": [FEDAVG | {"busy": busy}], "faults": faults})


@pytest.mark.parametrize("protocol", GROUPED.values(), ids=GROUPED)
def test_nor_do_they_in_groups_and_in_parts(protocol: dict[str, Any]) -> None:
    assert_names_change_nothing(LABELLED | {"protocols": [protocol], "faults": FAULTS})


def test_nor_do_they_where_shadows_fall_between_stations_and_devices() -> None:
    ratios = {"name": "given", "uplink_db": 2.0, "downlink_db": 9.0}
    shadowing = {"sigma_db": 8.0, "redraw_every_s": 3.0, "correlation_s": 6.0}
    radio = {"name": "shannon", "profile": "pure", "bandwidth_hz": 900.0, "snr": ratios | {"shadowing": shadowing}}
    assert_names_change_nothing({"network.cell.radio": radio, "faults": FAULTS})


def assert_names_change_nothing(scenario_of_them: dict[str, Any]) -> None:
    changes = EVERYTHING_HAPPENS | scenario_of_them
    faults = changes["faults"]
    written = to_explicit(scenario(changes).topology.build())
    names = {name: f"z{len(written['nodes']) - number}" for number, name in enumerate(written["nodes"])}
    renamed = {"topology": with_names(written, names), "faults": with_names(faults, names)}
    built, other = simulated(changes), simulated(changes | renamed)
    assert [client.name for client in other.clients] == [names[client.name] for client in built.clients]
    assert same(built.trace, other.trace)
    assert same(built.trace, simulated(changes | {"topology": written}).trace)


@pytest.mark.parametrize("routing", ["fixed", "around_outages"])
def test_names_of_a_rings_nodes_change_nothing(routing: str) -> None:
    faults = {
        "scheduled": [{"link": ["east", "cloud"], "at_s": 5.0, "for_s": 20.0, "every_s": 45.0}],
        "random": [{"of": "wires", "mean_up_s": 40.0, "mean_down_s": 8.0}],
        "routing": routing,
    }
    names = {name: f"z{9 - number}" for number, name in enumerate(RING["nodes"])}
    world = {"topology": RING, "faults": faults}
    one, other = (
        simulated(EVERYTHING_HAPPENS | changes)
        for changes in (world, {key: with_names(part, names) for key, part in world.items()})
    )
    assert same(one.trace, other.trace)


def test_what_never_fails_in_time_changes_nothing() -> None:
    calm = simulated(EVERYTHING_HAPPENS)
    late = {"node": "cloud", "at_s": 1e12}
    rare = {"of": "wires", "mean_up_s": 1e12, "mean_down_s": 1.0}
    for faults in ({}, {"messages": "lose"}, {"scheduled": [late]}, {"random": [rare], "routing": "around_outages"}):
        assert same(calm.trace, simulated(EVERYTHING_HAPPENS | {"faults": faults}).trace)


def test_detours_that_are_never_needed_change_nothing() -> None:
    # A star has no other way: an outage is waited for on any kind of route.
    one, other = (
        simulated(EVERYTHING_HAPPENS | {"faults": FAULTS | {"routing": routing}})
        for routing in ("fixed", "around_outages")
    )
    assert same(one.trace, other.trace)


def test_the_order_of_clients_does_change_something() -> None:
    # Or the test of names would prove little: index 0 is another device's then.
    written = to_explicit(scenario(EVERYTHING_HAPPENS).topology.build())
    turned = written | {"nodes": dict(reversed(written["nodes"].items()))}
    assert not same(
        simulated(EVERYTHING_HAPPENS | {"topology": written}).trace,
        simulated(EVERYTHING_HAPPENS | {"topology": turned}).trace,
    )


@pytest.mark.parametrize("late_transfers", LATE)
def test_a_deadline_that_nobody_misses_is_no_deadline(late_transfers: str) -> None:
    changes = EVERYTHING_HAPPENS | {"network.late_transfers": late_transfers}
    far, none, near = (
        simulated(changes | {"protocols": [FEDAVG | {"deadline_s": deadline_s}]})
        for deadline_s in (LARGEST, None, 25.0)
    )
    assert same(far.trace, none.trace)
    assert not same(near.trace, none.trace)


@pytest.mark.parametrize("busy", BUSY)
@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_fedprox_and_fedavg_take_the_same_time(busy: str, mu: float) -> None:
    fedavg, fedprox = (
        simulated(EVERYTHING_HAPPENS | {"protocols": [FEDAVG | {"busy": busy} | protocol]})
        for protocol in ({"name": "fedavg"}, {"name": "fedprox", "mu": mu})
    )
    assert same(fedavg.trace, fedprox.trace)


@pytest.mark.parametrize(
    "protocol",
    [{"name": "fedavg", "fraction": 0.5}, {"name": "fedprox", "fraction": 0.5, "mu": 0.1}, {"name": "centralised"}],
)
def test_in_a_network_without_delay_everything_happens_at_once(protocol: dict[str, Any]) -> None:
    changes = NO_TIME | {
        "stop.rounds": 5,
        "devices.cloud": {"compute": {"name": "flops", "flops_per_s": float("inf")}},
        "protocols": [protocol],
        "topology": {"name": "star", "devices": 6},
    }
    world = simulated(changes)
    assert world.env.now == 0.0
    assert len(world.trace.rounds) == 5
    for table in world.trace.tables.values():
        for column in table.array().dtype.names:
            if column.endswith("_s"):
                assert not table.array()[column].any(), column
    hops = world.trace.hops.array()
    assert len(hops) == {"fedavg": 5 * 3 * 4, "fedprox": 5 * 3 * 4, "centralised": 6 * 2}[protocol["name"]]
    assert (hops["bytes"] == 1_000).all()


def test_a_network_without_delay_chooses_the_same_cohorts_as_a_slow_one() -> None:
    changes = {
        "stop.rounds": 6,
        "topology": {"name": "star", "devices": 9},
        "protocols": [{"name": "fedavg", "clients": 3}],
    }
    fast, slow = simulated(changes | NO_TIME), simulated(changes)
    rounds = [world.trace.work.array()["client"].reshape(6, 3) for world in (fast, slow)]
    assert [sorted(cohort) for cohort in rounds[0].tolist()] == [sorted(cohort) for cohort in rounds[1].tolist()]
