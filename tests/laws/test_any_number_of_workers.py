"""Workers decide when a run is over, and nothing else: any number of them leaves the same bytes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from tiers import FULL

from fedsim.experiment.run import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="several worker processes need Linux")

WHOLE: dict[str, Any] = {
    "protocols": [
        {"name": "fedavg", "clients": 17},
        {"name": "fedprox", "clients": 5, "mu": 0.5},
    ],
    "stop.rounds": 2,
    "training.momentum": 0.5,
    "data.client_test_fraction": 0.2,
    "evaluate.on": ["global", "clients"],
}


@pytest.mark.drawn
@pytest.mark.parametrize("executor", ["batched", "processes"])
def test_any_number_of_workers_leaves_the_same_bytes(tmp_path: Path, executor: str) -> None:
    """With three, checkpoints are written at every occasion: while workers are busy."""
    outcomes = []
    for workers, interval_s in ((1, 30.0), (3, 1e-9), (2, 30.0))[: 3 if FULL else 2]:
        folder = tmp_path / str(workers)
        options: dict[str, Any] = {"executor": executor, "workers": workers, "checkpoint_interval_s": interval_s}
        run(digit_runs.scenario(WHOLE), out=folder, **options)
        outcomes.append(digit_runs.outcome(folder))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert len(outcomes[0]) == 1 + 2 * 3  # the rounds; of two protocols the trace and two parts


def test_processes_leave_the_bytes_of_the_serial_executor(tmp_path: Path) -> None:
    outcomes = []
    for executor, workers in (("serial", 1), ("processes", 3)):
        folder = tmp_path / executor
        run(digit_runs.scenario(WHOLE), out=folder, executor=executor, workers=workers)
        outcomes.append(digit_runs.outcome(folder))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("model", [{"name": "mlp", "hidden": [512]}, {"name": "small_cnn"}], ids=["wide", "images"])
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
