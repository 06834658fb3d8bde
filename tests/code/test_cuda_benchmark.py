"""The checklist for CUDA devices runs to its end where there is none, and counts what it says that it counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tapes import TapeRecorder

from benchmarks import cuda_parts, cuda_rounds, training_cuda
from benchmarks.cuda_parts import CHOICES, OF_A_WAVE, counted, plain_loop, recordings, waves
from benchmarks.cuda_rounds import rounds, ways
from benchmarks.cuda_work import Asked, error
from fedsim.learning.executors import matrix
from fedsim.learning.executors.batched import low_rank
from fedsim.learning.executors.batched.trainer import BatchedTrainer


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path, "cpu", batch=5, rounds=1)


@pytest.fixture
def as_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few clients, recorded on tapes, on which there is no machine code of our own."""
    for name, number in (("CLIENTS", 6), ("COHORT", 4), ("SAMPLES", 10), ("OF_A_WAVE", (2, 3))):
        monkeypatch.setattr(cuda_parts, name, number)
    monkeypatch.setattr(BatchedTrainer, "stacked", True)
    monkeypatch.setattr(BatchedTrainer, "recorder", TapeRecorder)
    monkeypatch.setattr(matrix, "kernels_for", lambda *_, **__: None)
    monkeypatch.setattr(low_rank, "correction_kernel", lambda *_: None)


def test_an_error_is_a_share_of_the_update() -> None:
    start, true = np.array([1.0, 1.0]), np.array([1.0, 3.0])
    assert error(np.array([1.5, 3.0]), true, start) == 0.25


@pytest.mark.slow
def test_groups_are_played_where_the_same_sizes_come_again(asked: Asked, as_on_cuda: None) -> None:
    equal, drawn, the_same = recordings(asked)
    assert " 5 of 6 groups" in equal  # two sums a round, of the same kind
    assert " 0 of 6 groups" in drawn
    assert " 4 of 6 groups" in the_same  # of two kinds
    with counted() as count:
        pass
    assert (count.groups, count.played) == (0, 0)


@pytest.mark.slow
def test_a_wave_is_timed_with_and_without_recordings(
    asked: Asked, as_on_cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TapeRecorder, "played", 0)
    lines = list(waves(asked))
    assert ["as CUDA graphs" in line for line in lines] == [False, True] * 2
    assert TapeRecorder.played == 2 * len(cuda_parts.OF_A_WAVE) * (cuda_parts.ONCE_ALL_ARE_KNOWN - 1 + asked.rounds)
    assert OF_A_WAVE == (8, 16, 32)


@pytest.mark.long
def test_every_choice_of_the_plain_loop_is_timed_on_the_same_training(asked: Asked) -> None:
    lines = list(plain_loop(asked))
    assert [choice in line for choice, line in zip(CHOICES, lines, strict=True)] == [True] * len(CHOICES)
    assert all(line.endswith("the same bits") for line in lines)
    assert torch.utils.deterministic.fill_uninitialized_memory


@pytest.mark.long
def test_rounds_are_timed_and_updates_compared(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    own = cuda_rounds.subjects
    monkeypatch.setattr(cuda_rounds, "subjects", lambda asked: own(asked)[:1])
    lines = list(rounds(asked))
    assert len(lines) == len(ways("cpu"))
    off = [float(line.partition("off by ")[2].partition(",")[0]) for line in lines]
    # Rounding alone may decide about a rectifier or a maximum: where the start moves by a last bit of float32,
    # PyTorch's float64 moves by up to 8e-3. Measured for float32, by processor, executor and mini-batch: 1e-4 to 9e-3.
    assert max(off[:2]) < 2e-2 and max(1e-2, 3 * max(off[:2])) < off[2] < 0.3  # bfloat16


def test_on_a_device_every_precision_is_compared_with_the_cpu() -> None:
    assert [way.rpartition(", ")[2] for way in ways("cuda")] == [
        "float32 on cpu",
        "float32 on cpu",
        "float32 on cuda",
        "tf32 on cuda",
        "bfloat16 on cuda",
    ]


def test_a_part_that_fails_says_why_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(asked: Asked) -> Any:
        yield "so far"
        raise RuntimeError("no kernel [for] this")

    monkeypatch.setattr(training_cuda, "PARTS", {"waves": failing, "plain": lambda asked: iter(["well"])})
    assert training_cuda.main(["--torch-device", "cpu"]) == 1
    said = capsys.readouterr().out
    assert said.index("so far") < said.index("waves failed: RuntimeError: no kernel [for] this") < said.index("well")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_it_says_so() -> None:
    with pytest.raises(SystemExit, match="no CUDA device"):
        training_cuda.main([])
