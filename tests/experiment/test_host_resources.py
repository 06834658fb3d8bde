"""What a run asks of the machine it runs on does not grow with its rounds: neither disk nor memory."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch
from run_server import RunServer, peaks

from fedsim.experiment.run import run
from fedsim.learning.executors.plain import PlainTrainer

MODEL_BYTES = 4 * 6_687_834  # hfedms_cnn
HFEDMS_CNN = {"model": {"name": "hfedms_cnn"}, "data.pixels": 28, "data.partition": {"name": "iid"}}


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


def size_bytes(folder: Path) -> int:
    """All files in a folder, now."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # deleted since it was listed
            total += path.stat().st_size
    return total


@pytest.mark.parametrize("every", [1, 3])
def test_a_trained_model_is_gone_before_the_next_one_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Nobody else on the way from the device to the mean keeps it: no journey, no round, no ledger."""
    trained: list[weakref.ref[torch.Tensor]] = []
    alive: list[int] = []
    train = PlainTrainer._train

    def watched(self: PlainTrainer, *arguments: Any) -> dict[str, Any]:
        alive.append(sum(tensor() is not None for tensor in trained))
        outputs = train(self, *arguments)
        trained.append(weakref.ref(outputs["classifier"]["fc2.weight"]))
        return outputs

    monkeypatch.setattr(PlainTrainer, "_train", watched)
    protocol = {"name": "fedavg", "clients": 20}
    run(digit_runs.scenario({"protocols": [protocol], "evaluate.every": every}), out=tmp_path, executor="serial")
    assert alive == [0] * 3 * 20


@pytest.mark.slow
def test_the_store_of_a_hundred_rounds_of_a_large_model_stays_small(server: RunServer, tmp_path: Path) -> None:
    few_samples = {"topology.devices": 300, "data.test_fraction": 0.05}
    protocol = {"name": "fedavg", "clients": 2}
    scenario = digit_runs.data(HFEDMS_CNN | few_samples | {"protocols": [protocol], "stop.rounds": 100})
    store, sizes, finished = tmp_path / "run" / "store", [], False
    process = server.start(scenario, tmp_path / "run", checkpoint_interval_s=0.15)
    while not finished:
        sizes.append(size_bytes(store))
        time.sleep(0.03)
        with suppress(FileNotFoundError):
            finished = json.loads((tmp_path / "run" / "manifest.json").read_bytes())["status"] == "finished"
    assert server.wait(process) == 0

    checkpoints = sum(row["event"] == "checkpoint" for row in digit_runs.ledger(store))
    assert checkpoints >= 20, "so many times, models were written and deleted"
    assert max(sizes) > 2 * MODEL_BYTES, "it was looked at while there was something in it"
    assert max(sizes) < 200e6
    assert size_bytes(store) < 1.1 * MODEL_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "batched"])
def test_peak_memory_does_not_grow_with_rounds(server: RunServer, tmp_path: Path, executor: str) -> None:
    """110 of 368 clients: if their models were all alive at once, they would need 2.9 GB."""
    protocol = {"name": "fedavg", "clients": 110}
    changes = HFEDMS_CNN | {"topology.devices": 368, "protocols": [protocol], "stop.rounds": 6}
    here: dict[str, Any] = {"executor": executor, "workers": 1}  # so all memory is this process's
    assert server.run(digit_runs.data(changes), tmp_path / "run", checkpoint_interval_s=5.0, **here) == 0
    found = peaks(tmp_path / "run")
    assert len(found) == 6
    assert found[5] - found[2] < 60e6
    assert found[5] < 110 * MODEL_BYTES / 2
