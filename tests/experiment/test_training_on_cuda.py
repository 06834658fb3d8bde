"""Whole runs as on a CUDA device: there, where there is one, and with the same operations on the CPU.

A run on one machine gives the same bytes again, whether it is run at once or goes on from a checkpoint.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch
from tapes import TapeRecorder

from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.learning.executors import matrix
from fedsim.learning.executors.batched import low_rank
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.scenario.load import load

DIGITS = Path(__file__).parents[2] / "scenarios" / "digits.yaml"
CONVOLUTIONS = {
    "model": {"name": "small_cnn", "channels": [4, 8], "hidden": 16},
    "data.stream": {"samples": 32},
    "seeds": [1, 2],
    "protocols": [{"name": "fedavg", "clients": 20}],  # everybody, so that each round is of the same kind
}
ONE_SEED = CONVOLUTIONS | {"seeds": [1]}
SELECTED: dict[str, Any] = ONE_SEED | {
    "data.partition": {"name": "iid"},
    "data.client_test_fraction": 0.3,
    "evaluate": {"on": ["own"]},
    "training.momentum": 0.9,
    "stop": {"rounds": 2},
    "protocols": [
        {"name": "spatl", "clients": 4, "selection": {"name": "gnn_ppo", "episodes": 2, "update_steps": 2}},
    ],
}
NORMALISED: dict[str, Any] = {
    "model": {"name": "resnet", "depth": 20},
    "stop": {"rounds": 1},
    "protocols": [{"name": "fedavg", "clients": 2}],
}
PLAIN_SELECTED = SELECTED | {"model": {"name": "resnet", "depth": 20}}
OF_CLIENTS: dict[str, Any] = {  # whose objectives, or models, are not what clients are trained together by
    "fused": {"name": "fedfusion_multi", "clients": 4},
    "two streams": {"name": "fedmmd", "clients": 4},
    "gated": {"name": "cgau", "clients": 4, "pretraining_rounds": 1, "layers": 1, "units": 6},
}
PLAIN: dict[str, Any] = {"trained": NORMALISED, "selected": PLAIN_SELECTED} | {
    name: ONE_SEED | {"stop": {"rounds": 2}, "protocols": [protocol]} for name, protocol in OF_CLIENTS.items()
}

on_cuda = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here"),
]
each_place = pytest.mark.parametrize("torch_device", ["cpu", pytest.param("cuda", marks=on_cuda)])
each_place_in_time = pytest.mark.parametrize(
    "torch_device", [pytest.param("cpu", marks=pytest.mark.long), pytest.param("cuda", marks=on_cuda)]
)


@pytest.fixture(autouse=True)
def as_on_cuda_everywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tapes stand in for CUDA graphs on the CPU; machine code of our own is on no tape."""
    monkeypatch.setattr(BatchedTrainer, "stacked", True)
    if "cuda" not in request.node.keywords:
        monkeypatch.setattr(BatchedTrainer, "recorder", TapeRecorder)
        monkeypatch.setattr(TapeRecorder, "played", 0)
        monkeypatch.setattr(matrix, "kernels_for", lambda *_, **__: None)
        monkeypatch.setattr(low_rank, "correction_kernel", lambda *_: None)


class Killed(Exception):
    pass


def trained(folder: Path, torch_device: str, changes: dict[str, Any], **options: Any) -> Results:
    return run(digit_runs.scenario(changes), out=folder, torch_device=torch_device, workers=1, **options)


@each_place_in_time
def test_a_run_gives_the_same_bytes_again(torch_device: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        trained(tmp_path / name, torch_device, CONVOLUTIONS)
    assert digit_runs.outcome(tmp_path / "one") == digit_runs.outcome(tmp_path / "two")
    assert torch_device == "cuda" or TapeRecorder.played


@each_place
def test_a_run_goes_on_from_what_it_has_stored(
    torch_device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path / "whole", torch_device, ONE_SEED)
    left = [7]
    own = BatchedTrainer.train

    def dies(trainer: BatchedTrainer, *arguments: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise Killed
        return own(trainer, *arguments)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(BatchedTrainer, "train", dies)
        trained(tmp_path / "parts", torch_device, ONE_SEED, checkpoint_interval_s=1e-9)
    trained(tmp_path / "parts", torch_device, ONE_SEED, resume=True)
    assert any(row["event"] == "loaded" for row in digit_runs.ledger(tmp_path / "parts" / "store"))
    assert digit_runs.outcome(tmp_path / "parts") == digit_runs.outcome(tmp_path / "whole")


@each_place_in_time
def test_models_are_the_same_but_for_rounding_as_one_client_after_the_other(torch_device: str, tmp_path: Path) -> None:
    plain = run(digit_runs.scenario(ONE_SEED), out=tmp_path / "plain", executor="serial", precision="float64")
    stacked = trained(tmp_path / "stacked", torch_device, ONE_SEED, precision="float64")
    expected = digit_runs.weights(plain, "fedavg")
    for name, tensor in digit_runs.weights(stacked, "fedavg").items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-9, atol=1e-12)


@each_place_in_time
def test_filters_are_chosen_where_clients_train(torch_device: str, tmp_path: Path) -> None:
    plain = run(digit_runs.scenario(SELECTED), out=tmp_path / "plain", executor="serial", precision="float64")
    there = trained(tmp_path / "there", torch_device, SELECTED, executor="batched", precision="float64")
    assert there.rounds["uplink_bytes"].tolist() == plain.rounds["uplink_bytes"].tolist()
    assert there.summary["filters_share"].tolist() == plain.summary["filters_share"].tolist()
    expected = digit_runs.weights(plain, "spatl")
    for name, tensor in digit_runs.weights(there, "spatl").items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("torch_device", [pytest.param("cuda", marks=on_cuda)])
def test_the_digits_give_the_same_bytes_again(torch_device: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(load(DIGITS), out=tmp_path / name, torch_device=torch_device)
    assert digit_runs.outcome(tmp_path / "one") == digit_runs.outcome(tmp_path / "two")


@pytest.mark.parametrize("changes", PLAIN.values(), ids=PLAIN)
@each_place_in_time
def test_models_of_the_plain_loop_give_the_same_bytes_again(
    torch_device: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    for name in ("one", "two"):
        trained(tmp_path / name, torch_device, changes)
    assert digit_runs.outcome(tmp_path / "one") == digit_runs.outcome(tmp_path / "two")


@pytest.mark.parametrize("torch_device", [pytest.param("cuda", marks=on_cuda)])
def test_tf32_is_a_numeric_family_of_its_own(torch_device: str, tmp_path: Path) -> None:
    families = [
        trained(tmp_path / precision, torch_device, CONVOLUTIONS, precision=precision).manifest["numeric_family"]
        for precision in ("float32", "tf32")
    ]
    assert families[1] == families[0].replace("float32", "tf32") != families[0]
