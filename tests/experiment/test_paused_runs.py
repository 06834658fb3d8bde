"""A run that an observer pauses goes on later as if nothing had been: no training is computed again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import digit_runs
import pytest

from fedsim.experiment.host import HostOptions
from fedsim.experiment.observer import Observer, Paused
from fedsim.experiment.run import run_with
from fedsim.protocols.run_loop import Round

SERIAL = HostOptions(executor="serial")
REMEMBERING = {
    "scaffold": {"name": "scaffold", "clients": 4},
    "hfedms_d": {"name": "hfedms_d", "growth": {"name": "logarithmic", "beta": 4}},
    "server momentum": {"name": "fedadam", "clients": 4},
}


class Pausing(Observer):
    """Pauses after the round of this number."""

    def __init__(self, number: int | None) -> None:
        self.number = number

    def pauses(self, done: Round) -> bool:
        return done.number == self.number


def computed(store: Path) -> Counter[str]:
    """How often each training was computed, by all that the store has seen."""
    lines = [line for path in (store / "ledger").glob("*.jsonl") for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    return Counter(row["key"] for row in rows if row["event"] == "computed" and row["operation"].startswith("train"))


@pytest.mark.parametrize("protocol", REMEMBERING.values(), ids=list(REMEMBERING))
def test_pauses_change_nothing_and_cost_no_training(protocol: dict[str, Any], tmp_path: Path) -> None:
    scenario = digit_runs.scenario({"stop.rounds": 6, "evaluate.every": 2, "protocols": [protocol]})
    whole, paused = tmp_path / "whole", tmp_path / "paused"
    run_with(SERIAL, scenario, out=whole, progress=False)
    for number in (2, 2, 4, 2, None):  # also as a search that was interrupted goes by an earlier pause again
        try:
            run_with(SERIAL, scenario, out=paused, resume=True, observer=Pausing(number))
        except Paused:
            assert number is not None
    assert computed(paused / "store") == computed(whole / "store")
    assert digit_runs.outcome(paused) == digit_runs.outcome(whole)


def test_the_last_round_is_no_pause(tmp_path: Path) -> None:
    run_with(SERIAL, digit_runs.scenario({"stop.rounds": 2}), out=tmp_path / "run", observer=Pausing(2))
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "finished"
