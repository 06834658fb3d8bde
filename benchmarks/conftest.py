"""Benchmarks are read as ratios within one run: never compare seconds of two machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedsim.scenario.load import load
from fedsim.scenario.schema import Scenario

SCENARIOS = Path(__file__).parent.parent / "scenarios"


@pytest.fixture(scope="session")
def digits() -> Scenario:
    """The digits with one seed."""
    return load(SCENARIOS / "digits.yaml", overrides=["seeds=[1]"])
