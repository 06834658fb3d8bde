"""The sums that scenarios carry in their comments: worked out here again, and met by the simulation."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pages import ROOT

from fedsim.experiment.run import run
from fedsim.scenario.load import load

MLP_BYTES = 4 * (64 * 512 + 512 + 512 * 10 + 10)


def simulated(name: str, tmp_path: Path, *overrides: str) -> dict[Any, pd.Series]:
    """The last round of each protocol of a scenario, without training."""
    results = run(load(ROOT / "scenarios" / name, overrides=["learn=false", *overrides]), out=tmp_path / "run")
    last = results.rounds.groupby("protocol", sort=False).tail(1)
    return {row["protocol"]: row for _, row in last.iterrows()}


def fullest_of_three_cells(chosen: int, cells: int, sensors_per_cell: int) -> float:
    """The mean of the largest of three cells' shares, when so many are drawn from equal cells (hypergeometric)."""
    sensors = cells * sensors_per_cell
    others = sensors - 3 * sensors_per_cell
    mean = 0.0
    for shares in product(range(chosen + 1), repeat=3):
        rest = chosen - sum(shares)
        if 0 <= rest <= others:
            ways = math.prod(math.comb(sensors_per_cell, share) for share in shares) * math.comb(others, rest)
            mean += max(shares) * ways / math.comb(sensors, chosen)
    return mean


def test_one_night_over_nb_iot(tmp_path: Path) -> None:
    on_the_air_bytes = (MLP_BYTES + math.ceil(MLP_BYTES / 1318) * 40) / 0.95
    device_s = 8 * on_the_air_bytes / 26_150 + 8 * on_the_air_bytes / 62_500
    round_s = fullest_of_three_cells(12, 4, 12) * device_s
    assert (MLP_BYTES, round(on_the_air_bytes), round(device_s, 1), round(round_s)) == (153_640, 166_653, 72.3, 310)

    night = simulated("night_shift_nb_iot.yaml", tmp_path)
    wait, deadline = night["wait"], night["deadline"]
    assert wait["round"] == pytest.approx(28_800 / round_s, rel=0.05)  # computing and chance are not in the sum
    assert wait["transfer_bytes"] == pytest.approx(wait["round"] * 12 * 2 * on_the_air_bytes, rel=0.005)
    assert (wait["round"], round(wait["transfer_bytes"] / 1e6)) == (91, 364)
    assert (deadline["round"], round(deadline["transfer_bytes"] / 1e6)) == (101, 434)
    assert deadline.drop("protocol").equals(night["deadline-uniform"].drop("protocol"))


def test_a_deadline_that_the_air_cannot_meet(tmp_path: Path) -> None:
    down_s, up_s = 8 * MLP_BYTES / 300_000, 8 * MLP_BYTES / 375_000
    assert (round(down_s, 2), round(up_s, 2), round(9 * (down_s + up_s))) == (4.1, 3.28, 66)
    assert pytest.approx(14.5, abs=0.05) == 40e6 / (2 * 9 * MLP_BYTES)

    late = simulated("late_devices_lte_m.yaml", tmp_path)
    assert [row["round"] for row in late.values()] == [17, 17]
    assert late["skip"]["participants"] == 0 < late["abort"]["participants"]


@pytest.mark.long
def test_vehicles_in_a_ring_with_a_broken_wire(tmp_path: Path) -> None:
    snr_db = 23.0 - (20 * math.log10(4 * math.pi * 3.7e9 / 299_792_458) + 30 * math.log10(60)) + 174.0 - 73.0103 - 5.0
    assert (round(snr_db, 1), round(2.93 * 20, 1)) == (21.8, 58.6)

    def minutes(folder: str, *overrides: str) -> dict[str, float]:
        last = simulated("agv_private_5g.yaml", tmp_path / folder, *overrides)
        return {protocol: round(row["sim_time_s"] / 60, 1) for protocol, row in last.items()}

    assert minutes("around") == {"wait": 18.2, "deadline": 18.2}
    assert minutes("fixed", "faults.routing=fixed") == {"wait": 23.0, "deadline": 18.4}
    assert minutes("none", "faults={}")["wait"] == 18.2


def test_a_hundred_thousand_sensors_on_a_smaller_scale(tmp_path: Path) -> None:
    last = simulated("hundred_thousand_sensors.yaml", tmp_path, "topology.branching=[4]")["fedavg"]
    assert last["transfer_bytes"] == 400 * 2 * 100e3 * 10
    assert last["sim_time_s"] == pytest.approx(10 * (4 + 10 + 8 + 2 * 0.005), rel=1e-9)
