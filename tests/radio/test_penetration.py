"""Through the outer wall: TR 38.901's two kinds of buildings, the depth behind it, and one draw for each device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from radio_sites import BUDGET, shannon, site
from scipy import stats

from fedsim.errors import Misfit
from fedsim.radio.propagation.penetration import Penetration, penetration_losses_db, wall_db
from fedsim.radio.settings import Place, RadioPath
from fedsim.radio.snr import FromLinkBudget

SIGMA_DB: dict[Penetration, float] = {"low_loss": 4.4, "high_loss": 6.5}


def inside(devices: int, depth_m: float = 0.0, **keys: Any) -> list[RadioPath]:
    return [replace(site(index=index, **keys), place=Place(indoor_m=depth_m)) for index in range(devices)]


def drawn_db(model: Penetration, paths: Sequence[RadioPath], carrier_hz: float = 3.5e9) -> np.ndarray:
    """What is drawn on top of the wall, for devices right behind it."""
    return penetration_losses_db(model, paths, carrier_hz) - wall_db(model, carrier_hz)


@pytest.mark.parametrize(
    ("model", "ghz", "loss_db"),
    [
        ("low_loss", 0.9, 10.56),  # glass 2.18 dB, concrete 8.6 dB: 5 - 10 lg(0.3 x 0.6053 + 0.7 x 0.1380)
        ("low_loss", 3.5, 12.70),  # glass 2.7 dB, concrete 19 dB: 5 - 10 lg(0.3 x 0.5370 + 0.7 x 0.01259)
        ("high_loss", 0.9, 18.50),  # glass 23.27 dB, concrete 8.6 dB: 5 - 10 lg(0.7 x 0.00471 + 0.3 x 0.1380)
        ("high_loss", 3.5, 26.85),  # glass 24.05 dB, concrete 19 dB: 5 - 10 lg(0.7 x 0.003936 + 0.3 x 0.01259)
        ("high_loss", 28.0, 37.95),  # glass 31.4 dB; nothing comes through concrete
    ],
)
def test_a_wall_worked_by_hand(model: Penetration, ghz: float, loss_db: float) -> None:
    assert wall_db(model, ghz * 1e9) == pytest.approx(loss_db, abs=0.01)


def test_half_a_decibel_a_metre_behind_the_wall() -> None:
    near_db, deep_db = (penetration_losses_db("low_loss", inside(50, depth_m), 3.5e9) for depth_m in (0.0, 25.0))
    assert deep_db - near_db == pytest.approx(12.5)


@pytest.mark.parametrize("model", SIGMA_DB)
def test_buildings_differ_by_the_normal_law_of_the_standard(model: Penetration) -> None:
    """10,000 devices: 4 standard errors of the deviation are 2.8 %; 4.4 for 6.5 dB would be off by a third."""
    losses_db = drawn_db(model, inside(10_000))
    assert losses_db.std() == pytest.approx(SIGMA_DB[model], rel=0.028)
    assert stats.kstest(losses_db / SIGMA_DB[model], "norm").pvalue > 1e-4


def test_a_building_is_drawn_for_the_device_alone() -> None:
    """Not for its station, and whoever else is asked for, indoors or not."""
    alone_db = drawn_db("low_loss", inside(30))
    assert drawn_db("low_loss", inside(30, station=5)).tolist() == alone_db.tolist()
    crowd = [path if index % 3 else site(index=index) for index, path in enumerate(inside(30))]
    among_db = penetration_losses_db("low_loss", crowd, 3.5e9)
    assert among_db[::3].tolist() == [0.0] * 10
    assert drawn_db("low_loss", crowd)[1::3].tolist() == alone_db[1::3].tolist()
    assert penetration_losses_db("low_loss", crowd[7:8], 3.5e9) == among_db[7]
    assert len({*alone_db, *drawn_db("low_loss", inside(30, seed=2))}) == 60


def test_a_building_is_a_term_of_its_own() -> None:
    outside, behind = site(), replace(site(), place=Place(indoor_m=4.0))
    radio = shannon({**BUDGET, "penetration": "high_loss"})
    open_air, indoors = (radio.budgets(path).uplink for path in (outside, behind))
    rows = {name: value for name, value, _ in indoors.rows()}
    assert "penetration loss" not in {name for name, _, _ in open_air.rows()}
    assert [name for name, _, _ in indoors.rows()][2:6] == ["path loss", "extra loss", "penetration loss", "shadowing"]
    assert rows["penetration loss"] == penetration_losses_db("high_loss", [behind], 0.9e9)[0]
    assert open_air.snr_db - indoors.snr_db == pytest.approx(rows["penetration loss"])


def test_only_the_standard_s_two_kinds_of_buildings_are_known() -> None:
    with pytest.raises(ValidationError, match="'low_loss' or 'high_loss'"):
        FromLinkBudget(**{**BUDGET, "penetration": "brick"})
    assert FromLinkBudget(**BUDGET).penetration == "low_loss"


def test_a_device_deeper_in_its_building_than_its_station_is_away_is_refused() -> None:
    deep = replace(site(100.0, sensor="cam-3"), place=Place(indoor_m=100.5))
    with pytest.raises(Misfit, match=r"'cam-3' stands 100\.5 m deep .* base station is 100 m away"):
        shannon().rates(deep)
    assert shannon().rates(replace(deep, place=Place(indoor_m=100.0))).downlink_bps > 0
