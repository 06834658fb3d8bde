"""Every scenario of the repository can be described: its keys and parts go together, and fit its data."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiers import mostly_long

from fedsim.cli import main

SCENARIOS = Path(__file__).parents[2] / "scenarios"
ALL = {path.relative_to(SCENARIOS).as_posix(): path.read_text("utf-8") for path in sorted(SCENARIOS.rglob("*.yaml"))}
WITH_DATA = [name for name, text in ALL.items() if "FEDSIM_DATA" in text]
WITHOUT = [name for name in ALL if name not in WITH_DATA]
NOW = [f"{name}.yaml" for name in ("agv_with_faults", "far_sensors_lte_m", "night_shift_nb_iot", "plant_mixed", "wear")]


@pytest.mark.parametrize("name", mostly_long(WITHOUT, now=NOW))
def test_a_scenario_that_needs_no_files_can_be_described(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FEDSIM_DATA", raising=False)
    assert main(["describe", str(SCENARIOS / name)]) == 0, capsys.readouterr().err


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize("name", WITH_DATA)
def test_a_scenario_with_files_can_be_described(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", str(SCENARIOS / name), "--all-data"]) == 0, capsys.readouterr().err
