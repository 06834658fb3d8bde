"""What a run asks of the machine it runs on does not grow with its rounds: neither disk nor memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch
from run_server import RunServer, peaks

from fedsim.experiment.run import run
from fedsim.learning import store
from fedsim.learning.executors.plain import PlainTrainer

MODEL_BYTES = 4 * 6_687_834  # hfedms_cnn
HFEDMS_CNN = {"model": {"name": "hfedms_cnn"}, "data.pixels": 28, "data.partition": {"name": "iid"}}


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer(exact_memory=True) as running:
        yield running


def size_bytes(folder: Path) -> int:
    """All files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*"))


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


@pytest.mark.long
def test_the_store_of_fifty_rounds_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint at every occasion; the folder is looked at after each file, before what it replaces is deleted."""
    written, sizes = store.write_atomically, []

    def watched(path: Path, *pieces: bytes) -> None:
        written(path, *pieces)
        sizes.append(size_bytes(tmp_path / "store"))

    monkeypatch.setattr(store, "write_atomically", watched)
    changes = {
        "model": {"name": "mlp", "hidden": [2048]},
        "protocols": [{"name": "fedavg", "clients": 2}],
        "stop.rounds": 50,
    }
    results = run(digit_runs.scenario(changes), out=tmp_path, executor="serial", checkpoint_interval_s=1e-9)
    model_bytes = results.manifest["model"]["bytes"]
    rows = digit_runs.ledger(tmp_path / "store")
    assert sum(row["event"] == "checkpoint" for row in rows) >= 100, "so many times, models were written and deleted"
    assert max(sizes) > 2 * model_bytes, "it was looked at while there was something in it"
    assert max(sizes) < 7 * model_bytes
    assert size_bytes(tmp_path / "store" / "tensors") < 1.1 * model_bytes
    assert size_bytes(tmp_path / "store") - size_bytes(tmp_path / "store" / "tensors") < 500 * len(rows)


@pytest.mark.long
@pytest.mark.parametrize("executor", ["serial", "batched"])
def test_peak_memory_does_not_grow_with_rounds(server: RunServer, tmp_path: Path, executor: str) -> None:
    """110 of 368 clients: if their models were all alive at once, they would need 2.9 GB.

    Two checkpoints come in each round.
    """
    protocol = {"name": "fedavg", "clients": 110}
    changes = HFEDMS_CNN | {"topology.devices": 368, "protocols": [protocol], "stop.rounds": 6}
    here: dict[str, Any] = {"executor": executor, "workers": 1}  # so all memory is this process's
    scenario = digit_runs.data(changes)
    assert server.run(scenario, tmp_path / "run", looks=True, checkpoint_interval_s=10.0, **here) == 0
    found = peaks(tmp_path / "run")
    assert len(found) == 6
    assert found[5] - found[2] < MODEL_BYTES / 2, "it would be three models, if each round left one"
    assert found[5] < 110 * MODEL_BYTES / 2
