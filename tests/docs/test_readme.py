"""The README's numbers are those that its own scenario gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, fenced
from tiers import mostly_long

from fedsim.experiment.run import run
from fedsim.scenario.load import load
from fedsim.viz.human import duration

README = ROOT / "README.md"
MODELS = {"small": [], "large": ["model={name: hfedms_cnn}", "data.pixels=28"]}
ROWS = re.findall(r"^\| (\w+) \| ([\d.]+ \w+) \| ([\d.]+ \w+) \|$", README.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    path = tmp_path / "plant.yaml"
    path.write_text(fenced(README, "yaml")[0], encoding="utf-8")
    return path


def test_there_is_a_row_for_each_of_four_radios() -> None:
    assert [profile for profile, *_ in ROWS] == ["nb_iot_nb1", "nb_iot_nb2", "lte_m_m1", "lte_m_m2"]


@pytest.mark.parametrize(("profile", "small", "large"), mostly_long(ROWS, now=[ROWS[0], ROWS[2]]))
def test_the_table_of_radios(profile: str, small: str, large: str, plant: Path, tmp_path: Path) -> None:
    simulated = []
    for model, overrides in MODELS.items():
        overrides = ["learn=false", f"network.cell.radio.profile={profile}", *overrides]
        results = run(load(plant, overrides=overrides), out=tmp_path / model)
        simulated.append(duration(results.rounds["sim_time_s"].iloc[-1]))
    assert simulated == [small, large]


def test_the_scenario_is_as_short_as_promised() -> None:
    assert len(fenced(README, "yaml")[0].splitlines()) <= 25


def test_the_picture_is_small() -> None:
    assert (ROOT / "docs/images/quickstart.png").stat().st_size < 150_000
