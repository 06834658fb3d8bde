"""HFedMS Table IV, FedAvg, as simulated: every model of 490 rounds on one serial half-duplex channel.

A tenth of the rounds is simulated here, as all are alike; all 490 are, with the rows of groups, in
test_grouped_accounting.py.

The paper's formula counts kappa K = 110.4 clients in a round; a simulated round has 110. So bytes and time are 110 /
110.4 of the formula's: 2.6197 TiB instead of 2.629, 1257.3 h instead of 1262.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from small_worlds import simulated

from fedsim.experiment.simulate import simulate
from fedsim.learning.learner import NoLearner
from fedsim.metrics.summary import event_row
from fedsim.metrics.tables import rounds_table
from fedsim.protocols.world import World
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.load import load
from fedsim.units import HOUR_S, TIB_BYTES

SCENARIO = Path(__file__).parents[2] / "scenarios" / "paper" / "hfedms_table4.yaml"
ROUNDS, CLIENTS, MODEL_BYTES = 490, 110, 4 * 6.68e6
TENTHS = 10


@pytest.fixture(scope="module")
def world() -> World:
    assert load(SCENARIO).stop.rounds == ROUNDS
    sizes_only = "data={name: declared, samples_per_client: 50}"  # nobody reads a label where no groups are formed
    settings = load(
        SCENARIO, overrides=[f"stop.rounds={ROUNDS // TENTHS}", "protocols=[{name: fedavg, fraction: 0.3}]", sizes_only]
    )
    (protocol,) = (protocol for protocol in settings.protocols if protocol.title == "fedavg")
    world = build_world(settings, protocol, gather_materials(settings, settings.seeds[0]), lambda *_: NoLearner())
    simulate(world, protocol, settings.stop)
    return world


def test_fedavgs_events_to_the_printed_digit(world: World) -> None:
    row = event_row(rounds_table(world.trace, {}, on=("global",), clients=[one.name for one in world.clients]), None)
    assert row["rounds"] == ROUNDS // TENTHS
    assert f"{TENTHS * row['transfer_bytes'] / TIB_BYTES:.4f}" == "2.6197"
    assert f"{TENTHS * row['sim_time_s'] / HOUR_S:.1f}" == "1257.3"


def test_fedavgs_events_are_the_closed_form_with_whole_clients(world: World) -> None:
    row = event_row(rounds_table(world.trace, {}, on=("global",), clients=[one.name for one in world.clients]), None)
    one_way_bytes = ROUNDS // TENTHS * CLIENTS * MODEL_BYTES
    assert row["uplink_bytes"] == row["downlink_bytes"] == pytest.approx(one_way_bytes, rel=1e-12)
    assert row["sim_time_s"] == pytest.approx(8 * one_way_bytes * (1 / 4e6 + 1 / 7e6), rel=1e-9)


def test_every_round_has_the_whole_cohort_and_the_air_never_rests(world: World) -> None:
    rounds, hops = world.trace.rounds.array(), world.trace.hops.array()
    assert set(rounds["participants"]) == {CLIENTS}
    assert hops["airtime_s"][hops["access"]].sum() == pytest.approx(world.env.now, rel=1e-9)


def test_without_sharing_the_air_it_would_take_eleven_hours() -> None:
    # What the paper did not mean: a channel for each client. One round is enough, as all are alike.
    one_round = simulated(
        {
            "topology": {"name": "star", "devices": 368, "backhaul_rate_bps": float("inf")},
            "network.cell.radio": {"name": "fixed", "profile": "lte_m_m2_hfedms"},
            "network.cell.discipline": {"name": "dedicated"},
            "devices.classes.sensor.compute": {"name": "per_sample", "seconds_per_sample": 0.0},
            "model.parameters": 6.68e6,
            "protocols": [{"name": "fedavg", "fraction": 0.3}],
        }
    )
    assert f"{ROUNDS * one_round.env.now / HOUR_S:.1f}" == "11.4"
