"""Workers decide when a run is over, and nothing else: any number of them leaves the same bytes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from tiers import FULL, mostly_long

from fedsim.experiment.run import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="several worker processes need Linux")

WHOLE: dict[str, Any] = {
    "protocols": [
        {"name": "fedavg", "clients": 17},
        {"name": "fedprox", "clients": 5, "mu": 0.5},
        {"name": "fedgs", "iterations": 3, "devices": 7, "training": {"learning_rate": 0.1, "batch_size": 8}},
    ],
    "stop.rounds": 2,
    "training.momentum": 0.5,
    "data.client_test_fraction": 0.2,
    "evaluate.on": ["global", "clients"],
}


Outcome = dict[str, bytes]


@pytest.fixture(scope="module")
def outcome_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Outcome]:
    """What an executor with so many workers leaves; with three, checkpoints are written at every occasion."""

    @cache
    def outcome(executor: str, workers: int) -> Outcome:
        folder = tmp_path_factory.mktemp("run")
        options: dict[str, Any] = {"executor": executor, "workers": workers}
        run(digit_runs.scenario(WHOLE), out=folder, checkpoint_interval_s=1e-9 if workers == 3 else 30.0, **options)
        return digit_runs.outcome(folder)

    return outcome


@pytest.mark.drawn
@pytest.mark.parametrize("executor", mostly_long(["batched", "processes"], now=["batched"]))
def test_any_number_of_workers_leaves_the_same_bytes(outcome_of: Callable[[str, int], Outcome], executor: str) -> None:
    outcomes = [outcome_of(executor, workers) for workers in (1, 3, 2)[: 3 if FULL else 2]]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert len(outcomes[0]) == 2 + 3 * 3  # rounds and counts; of three protocols the trace and two parts


def test_processes_leave_the_bytes_of_the_serial_executor(outcome_of: Callable[[str, int], Outcome]) -> None:
    assert outcome_of("serial", 1) == outcome_of("processes", 3)


WIDE, IMAGES = {"name": "mlp", "hidden": [512]}, {"name": "small_cnn"}


@pytest.mark.parametrize("model", mostly_long([WIDE, IMAGES], now=[WIDE]), ids=["wide", "images"])
def test_workers_that_train_clients_together_do_so_as_one(tmp_path: Path, model: dict[str, Any]) -> None:
    """Large layers are kept in factors, whose products are of everybody in a wave: waves must not depend on workers."""
    outcomes = []
    protocol = {"name": "fedavg", "clients": 18}
    changes = {"model": model, "protocols": [protocol], "training.batch_size": 7, "stop.rounds": 2}
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        run(digit_runs.scenario(changes), out=folder, executor="batched", workers=workers)
        outcomes.append(digit_runs.outcome(folder))
    assert outcomes[0] == outcomes[1]


UNEVEN: dict[str, Any] = {
    "protocols": [
        {"name": "fedavg", "clients": 18},
        {"name": "scaffold", "clients": 5},
        {"name": "stp", "grouping": {"name": "random"}, "growth": {"name": "constant", "beta": 5}},
    ],
    "data.partition": {"name": "dirichlet", "alpha": 0.1},
    "stop.rounds": 2,
}


@pytest.mark.parametrize("executor", ["batched", "processes"])
def test_clients_of_very_different_sizes_leave_the_same_bytes(tmp_path: Path, executor: str) -> None:
    """Waves are cut by work; in processes each client is a job, and who is done first is a matter of chance."""
    outcomes = []
    for workers in (1, 2, 3, 4, 5):
        run(digit_runs.scenario(UNEVEN), out=tmp_path / str(workers), executor=executor, workers=workers)
        outcomes.append(digit_runs.outcome(tmp_path / str(workers)))
    assert all(outcome == outcomes[0] for outcome in outcomes)
