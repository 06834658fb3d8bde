"""Law 6 on the clock: what must scale, what must not change, and what must be the same thing twice."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from small_worlds import EVERYTHING_HAPPENS, NO_TIME, scenario, simulated

from fedsim.kernel.trace import Trace
from fedsim.topology.explicit import to_explicit

FEDAVG = EVERYTHING_HAPPENS["protocols"][0]
LATE = ["finish", "cancel"]
BUSY = ["skip", "abort"]


def same(one: Trace, other: Trace) -> bool:
    """Whether two traces are equal, row by row and by their digests."""
    rows = all(np.array_equal(one.tables[name].array(), other.tables[name].array()) for name in one.tables)
    assert rows is (one.digest() == other.digest())
    return rows


def twice_as_fast(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The same scenario with all rates and speeds doubled, and all fixed times halved."""
    data = copy.deepcopy(dict(changes))
    data["network.cell.radio"] = {"name": "fixed", "uplink_bps": 2_000, "downlink_bps": 4_000}
    data["network.cell.delay_s"] /= 2
    data["network.link"]["rate_bps"] *= 2
    data["network.link"]["delay_s"] /= 2
    compute = data["devices.classes.sensor.compute"]
    for key, factor in (("mean_seconds_per_sample", 0.5), ("seconds_per_sample", 0.5), ("flops_per_s", 2)):
        if key in compute:
            compute[key] *= factor
    data["devices.aggregation_s"] /= 2
    for protocol in data["protocols"]:
        if "deadline_s" in protocol:
            protocol["deadline_s"] /= 2
    if "sim_time_s" in data["stop"]:
        data["stop"]["sim_time_s"] /= 2
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
    slow, fast = simulated(changes), simulated(twice_as_fast(changes))
    assert fast.env.now == slow.env.now / 2
    for name, table in slow.trace.tables.items():
        before, after = table.array(), fast.trace.tables[name].array()
        assert len(before) == len(after) > 0
        for column in before.dtype.names:
            factor = 2 if column.endswith("_s") else 1
            assert np.array_equal(before[column], after[column] * factor), (name, column)


@pytest.mark.parametrize("busy", BUSY)
def test_names_of_clients_change_nothing(busy: str) -> None:
    changes = EVERYTHING_HAPPENS | {"protocols": [FEDAVG | {"busy": busy}]}
    written = to_explicit(scenario(changes).topology.build())
    renamed = copy.deepcopy(written)
    names = {name: f"z{len(written['nodes']) - number}" for number, name in enumerate(written["nodes"])}
    renamed["nodes"] = {
        names[name]: node | ({"attach": names[node["attach"]]} if "attach" in node else {})
        for name, node in written["nodes"].items()
    }
    for link in renamed["links"]:
        link["between"] = [names[end] for end in link["between"]]
    built, other = simulated(changes), simulated(changes | {"topology": renamed})
    assert [client.name for client in other.clients] == [names[client.name] for client in built.clients]
    assert same(built.trace, other.trace)
    assert same(built.trace, simulated(changes | {"topology": written}).trace)


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
        simulated(changes | {"protocols": [FEDAVG | {"deadline_s": deadline_s}]}) for deadline_s in (1e300, None, 25.0)
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
