"""The sums that scenarios carry in their comments: worked out here again, and met by the simulation."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pages import ROOT

from fedsim.experiment.run import run
from fedsim.learning.learner import NoLearner
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.load import load

MLP_BYTES = 4 * (64 * 512 + 512 + 512 * 10 + 10)


def simulated(name: str, tmp_path: Path, *overrides: str) -> dict[Any, pd.Series]:
    """The last round of each protocol of a scenario, without training."""
    results = run(load(ROOT / "scenarios" / name, overrides=["learn=false", *overrides]), out=tmp_path / "run")
    last = results.rounds.groupby("protocol", sort=False).tail(1)
    return {row["protocol"]: row for _, row in last.iterrows()}


def slowest_of(chosen: int, seconds: list[float]) -> float:
    """The mean of the largest, when so many are drawn without replacement."""
    ways = math.comb(len(seconds), chosen)
    return sum(largest * math.comb(below, chosen - 1) / ways for below, largest in enumerate(sorted(seconds)))


def largest_of_normals(count: int) -> tuple[float, float]:
    """The mean and the standard deviation of the largest of so many draws from a standard normal law."""
    x = np.linspace(-8.0, 8.0, 16_001)
    density = np.gradient([NormalDist().cdf(value) ** count for value in x], x)
    mean = float(np.average(x, weights=density))
    return mean, math.sqrt(float(np.average((x - mean) ** 2, weights=density)))


@pytest.mark.long
def test_one_night_over_nb_iot(tmp_path: Path) -> None:
    on_the_air_bytes = (MLP_BYTES + math.ceil(MLP_BYTES / 1318) * 40) / 0.95
    device_s = 8 * on_the_air_bytes / 26_150 + 8 * on_the_air_bytes / 62_500
    assert (MLP_BYTES, round(on_the_air_bytes), round(device_s, 1)) == (153_640, 166_653, 72.3)
    hall_4_s = 8 * on_the_air_bytes / 120_800 + 8 * on_the_air_bytes / 158_500
    samples = 0.8 * 1_438 / 48
    assert (round(1 / 0.192308, 1), 1 / 0.25, round(hall_4_s + 0.6), round(samples)) == (5.2, 4, 20, 24)
    varies = math.sqrt(1.2 * 1.25 - 1)
    sigma = math.sqrt(math.log1p(varies**2))
    above, spread = largest_of_normals(9)
    times = math.exp(sigma * above + (sigma * spread) ** 2 / 2 - sigma**2 / 2)
    assert (round(varies, 2), round(sigma, 2), round(above, 2), round(times, 2)) == (0.71, 0.64, 1.49, 2.26)
    round_s = device_s + 0.6 + times * 3 * samples * 0.2
    assert (round(round_s, 1), round(28_800 / round_s)) == (105.4, 273)

    night = simulated("night_shift_nb_iot.yaml", tmp_path)
    wait, deadline = night["wait"], night["deadline"]
    assert wait["round"] == pytest.approx(28_800 / round_s, rel=0.03)
    assert wait["transfer_bytes"] == pytest.approx(wait["round"] * 12 * 2 * on_the_air_bytes, rel=0.005)
    assert (wait["round"], round(wait["transfer_bytes"] / 1e6)) == (277, 1_107)
    assert (deadline["round"], round(deadline["transfer_bytes"] / 1e6)) == (310, 1_497)
    assert deadline.drop("protocol").equals(night["deadline-uniform"].drop("protocol"))
    serial = ["network.cell.duplex=shared", "network.cell.discipline.name=serial"]
    dedicated = [f"network.cells.factory-4/station-1.{key}" for key in ("carriers=1", "discipline.name=dedicated")]
    before = simulated("night_shift_nb_iot.yaml", tmp_path / "serial", *serial, *dedicated)
    assert before["wait"]["round"] == 91


def test_a_deadline_that_slow_devices_miss(tmp_path: Path) -> None:
    down_s, up_s = 8 * MLP_BYTES / 300_000, 8 * MLP_BYTES / 375_000
    together_s = down_s * 9 * 0.3
    in_time = 9 * -math.expm1(-(60 - together_s - up_s) / 24)
    assert (round(down_s, 2), round(up_s, 2), round(together_s, 1), round(in_time, 2)) == (4.1, 3.28, 11.1, 7.66)
    assert (round(9 * (down_s + up_s)), round(40e6 / (2 * 9 * MLP_BYTES), 1)) == (66, 14.5)

    scenario = load(ROOT / "scenarios/late_devices_lte_m.yaml", overrides=["learn=false"])
    rounds = run(scenario, out=tmp_path / "fair").rounds.groupby("protocol")
    assert rounds["round"].max().to_dict() == {"skip": 15, "abort": 16}
    assert rounds["participants"].mean()["skip"] == pytest.approx(7.60, abs=0.005)
    serial = ["learn=false", "network.cell.duplex=shared", "network.cell.discipline.name=serial"]
    scenario = load(ROOT / "scenarios/late_devices_lte_m.yaml", overrides=serial)
    participants = run(scenario, out=tmp_path / "serial").rounds.groupby("protocol")["participants"].mean()
    assert participants.round(2).to_dict() == {"skip": 0.94, "abort": 3.71}


def test_sensors_at_all_distances(tmp_path: Path) -> None:
    loss_db = 20 * math.log10(4 * math.pi * 0.8e9 / 299_792_458) + 30 * math.log10(800) + 20.0
    up_db, down_db = (
        power - loss_db + 174.0 - 10 * math.log10(1.08e6) - noise for power, noise in ((23, 5), (36.8, 9))
    )
    narrowband_bps = 0.4 * math.log2(1 + 10 ** (up_db / 10)) * 1.08e6
    assert (round(loss_db, 1), round(up_db, 1), round(down_db, 1)) == (137.6, -5.9, 3.9)
    assert (round(narrowband_bps / 1e3), round(narrowband_bps * 3 / 8 / 1e3)) == (142, 53)
    assert 0.3 * 0.6 * math.log2(1 + 10 ** (down_db / 10)) * 1.08e6 > 300e3
    down_s, up_s = 8 * MLP_BYTES / 300e3, 8 * MLP_BYTES / (narrowband_bps * 3 / 8)
    assert (round(down_s, 1), round(up_s, 1), round(down_s + 2.3 + up_s, 1)) == (4.1, 23.2, 29.6)
    assert round(800 / 10 ** ((10 * math.log10(2 ** (1 / 0.432) - 1) - up_db) / 30)) == 320

    scenario = load(ROOT / "scenarios/far_sensors_lte_m.yaml", overrides=["learn=false"])
    world = build_world(scenario, scenario.protocols[0], gather_materials(scenario, 1), lambda *_: NoLearner())
    seconds = [
        8 * MLP_BYTES / client.attachment.air_downlink.rate_bps
        + 8 * MLP_BYTES / client.attachment.air_uplink.rate_bps
        + world.compute_seconds(client, client.samples)
        for client in world.clients
    ]
    assert sum(client.samples for client in world.clients) / 100 == 11.5
    assert round(slowest_of(20, seconds), 1) == 28.5
    wait, first = simulated("far_sensors_lte_m.yaml", tmp_path).values()
    assert (round(wait["sim_time_s"] / 60, 1), round(first["sim_time_s"] / 60, 1)) == (28.9, 23.2)
    assert first["transfer_bytes"] == pytest.approx(1.25 * wait["transfer_bytes"], rel=0.005)  # some never go up
    one = simulated("far_sensors_lte_m.yaml", tmp_path / "one", "network.cell.carriers=1")["wait"]
    assert round(one["sim_time_s"] / 60) == 107


@pytest.mark.long
def test_vehicles_in_a_ring_with_a_broken_wire(tmp_path: Path) -> None:
    snr_db = 23.0 - (20 * math.log10(4 * math.pi * 3.7e9 / 299_792_458) + 30 * math.log10(60)) + 174.0 - 73.0103 - 5.0
    assert (round(snr_db, 1), round(2.93 * 20, 1), round(2.93 * 20 / 5, 1)) == (21.8, 58.6, 11.7)

    def minutes(folder: str, *overrides: str) -> dict[str, float]:
        last = simulated("agv_with_faults.yaml", tmp_path / folder, *overrides)
        return {protocol: round(row["sim_time_s"] / 60, 1) for protocol, row in last.items()}

    assert minutes("around") == {"wait": 18.5, "deadline": 18.5}
    assert minutes("fixed", "faults.routing=fixed") == {"wait": 23.3, "deadline": 18.8}
    assert minutes("none", "faults={}")["wait"] == 18.5


def test_a_hundred_thousand_sensors_on_a_smaller_scale(tmp_path: Path) -> None:
    last = simulated("hundred_thousand_sensors.yaml", tmp_path, "topology.branching=[4]")["fedavg"]
    assert last["transfer_bytes"] == 400 * 2 * 100e3 * 10
    assert last["sim_time_s"] == pytest.approx(10 * (4 + 10 + 8 + 2 * 0.005), rel=1e-9)
