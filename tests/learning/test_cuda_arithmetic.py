"""The switches of CUDA's arithmetic are thrown while an executor computes there, then put back. No device needed."""

from __future__ import annotations

import os

import pytest
import torch
import torch.utils.deterministic

from fedsim.errors import UserError
from fedsim.learning.executors.cuda_arithmetic import arithmetic, repeatable


@pytest.fixture(autouse=True)
def workspace_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `repeatable` would otherwise leave behind."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def switches() -> tuple[object, ...]:
    cudnn = torch.backends.cudnn
    return torch.backends.cuda.matmul.allow_tf32, cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark


@pytest.mark.parametrize(("precision", "in_tf32"), [("float32", False), ("float64", False), ("tf32", True)])
def test_tf32_only_where_it_is_asked_for(precision: str, in_tf32: bool) -> None:
    before = switches()
    with arithmetic("cuda", precision):
        assert switches() == (in_tf32, in_tf32, True, False)
    assert switches() == before


def test_an_error_puts_them_back_too() -> None:
    before = switches()
    with pytest.raises(KeyError), arithmetic("cuda", "float32"):
        raise KeyError
    assert switches() == before


def test_for_the_cpu_nothing_is_touched() -> None:
    before = switches()
    with arithmetic("cpu", "float32"), repeatable("cpu"):
        assert switches() == before
        assert not torch.are_deterministic_algorithms_enabled()


def test_an_operation_that_cannot_be_repeated_is_a_users_error() -> None:
    with pytest.raises(UserError) as refusal, repeatable("cuda"):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))  # one of those that are not repeatable on the CPU either
    assert str(refusal.value) == (
        "--torch-device cuda: the model cannot be trained there with the same result each time (put_ does not have a "
        "deterministic implementation); leave the option out to train on the CPU"
    )
    assert not torch.are_deterministic_algorithms_enabled()


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="shape"), repeatable("cuda"):
        torch.zeros(3).view(2)
    assert not torch.are_deterministic_algorithms_enabled()


def test_memory_is_not_filled_where_algorithms_are_deterministic() -> None:
    """Else every new tensor there would cost an operation more."""
    memory = torch.utils.deterministic
    before = memory.fill_uninitialized_memory
    with repeatable("cuda"):
        assert torch.are_deterministic_algorithms_enabled()
        assert not memory.fill_uninitialized_memory
    assert memory.fill_uninitialized_memory == before
    with repeatable("cpu"):
        assert memory.fill_uninitialized_memory == before


@pytest.mark.parametrize("place", [arithmetic, repeatable])
def test_the_workspace_of_products_is_said_before_the_first_one(place: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuBLAS chooses algorithms by it, and it is read once: whoever computes first decides for all."""
    for said, read in ((None, ":4096:8"), (":16:8", ":16:8")):
        if said is None:
            monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
        else:
            monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", said)
        with arithmetic("cuda", "float32") if place is arithmetic else repeatable("cuda"):
            assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == read
