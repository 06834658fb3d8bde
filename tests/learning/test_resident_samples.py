"""Samples decoded some at a time, on the CPU or on the torch device, are those decoded one mini-batch at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from fedsim.data.captures import Capture
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine, Encoding, HashedNgrams, OneHot
from fedsim.data.stream.settings import Augmentation, StreamSettings
from fedsim.kernel.streams import Stream
from fedsim.learning.batches import POOL, Seen, mini_batches
from fedsim.learning.executors.batched.samples import ResidentSamples, Samples, padded
from fedsim.learning.training import TrainingSettings

CLIENTS, OWN = 3, 11
STREAM = Stream(1, "batches", 0, 5)


def dataset(encoding: Encoding, stored: np.dtype[Any], **more: Any) -> FederatedDataset:
    """Three clients with eleven random images each, stored as *encoding* takes them."""
    rng, number = np.random.default_rng(1), CLIENTS * OWN + 4
    characters = isinstance(encoding, OneHot | HashedNgrams)
    shape = (6,) if characters else (1, 4, 4)
    x = rng.integers(0, 4 if characters else 256, (number, *shape)).astype(stored)
    return FederatedDataset(
        name="random",
        classes=5,
        sample_shape=encoding.sample_shape(shape),
        sample_bytes=1.0,
        client_samples=np.full(CLIENTS, OWN, np.int64),
        stored=x,
        y=rng.integers(5, size=number),
        encoding=encoding,
        train_ids=tuple(np.arange(CLIENTS * OWN).reshape(CLIENTS, OWN)),
        test_ids=np.arange(CLIENTS * OWN, number),
        client_test_ids=(np.empty(0, np.int64),) * CLIENTS,
        **more,
    )


DATASETS = {
    "grey levels": dataset(Affine(scale=1 / 255, offset=-0.37), np.dtype(np.uint8)),
    "whole numbers": dataset(Affine(scale=0.1), np.dtype(np.int16)),
    "numbers": dataset(Affine(), np.dtype(np.float32)),
    "characters": dataset(OneHot(4), np.dtype(np.uint8)),
    "pairs of characters": dataset(HashedNgrams(4, 2, 10), np.dtype(np.uint8)),
}
DATASETS["values"] = dataclasses.replace(
    DATASETS["numbers"], classes=None, y=np.linspace(-1, 1, CLIENTS * OWN + 4, dtype=np.float32)
)
STREAMED = {
    "captures": StreamSettings(samples=4),
    "augmented captures": StreamSettings(samples=4, augmentation=Augmentation()),
}


TRAINING = TrainingSettings(learning_rate=0.1, batch_size=4, epochs=3)


def same_mini_batches(
    data: FederatedDataset, dtype: torch.dtype, *, client: int = 1, capture: Capture | None = None
) -> int:
    """How many there were."""
    about = Seen.of(data, client, capture), TRAINING, STREAM
    expected = list(mini_batches(data, *about))
    for some in (ResidentSamples(data, dtype, "cpu"), Samples(data, dtype)):
        for (x, y), (expected_x, expected_y) in zip(some.mini_batches(*about), expected, strict=True):
            assert x.dtype == dtype
            assert torch.equal(x, torch.from_numpy(expected_x).to(dtype)) and torch.equal(
                y, torch.from_numpy(expected_y)
            )
            assert y.dtype == torch.from_numpy(expected_y).dtype
    return len(expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", DATASETS)
def test_of_any_encoding(name: str, dtype: torch.dtype) -> None:
    assert same_mini_batches(DATASETS[name], dtype) == 9  # 4, 4 and 3 samples in each of 3 epochs
    for ids in (np.array([5, 0, 36, 5]), DATASETS[name].test_ids):
        resident, expected = (
            kind.of(ids) for kind in (ResidentSamples(DATASETS[name], dtype, "cpu"), Samples(DATASETS[name], dtype))
        )
        assert all(torch.equal(mine, its) for mine, its in zip(resident, expected, strict=True))


def test_of_everybodys_samples() -> None:
    assert same_mini_batches(DATASETS["grey levels"], torch.float32, client=POOL) == 27


@pytest.mark.parametrize("name", STREAMED)
def test_of_a_capture(name: str) -> None:
    data = dataclasses.replace(DATASETS["numbers"], stream=STREAMED[name])
    assert same_mini_batches(data, torch.float32, capture=Capture(7, 9)) == 9  # 4, 4 and 1 in 3 epochs


@pytest.mark.parametrize("kind", [Samples, ResidentSamples])
@pytest.mark.parametrize("ahead", [0, 1, 4, 8, 1000])
def test_however_many_are_decoded_together(kind: type[Samples], ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Samples, "_ahead_bytes", ahead * 16 * 4)
    monkeypatch.setattr(ResidentSamples, "_ahead_bytes", ahead * 16 * 4)
    together: list[int] = []
    own = kind.of
    monkeypatch.setattr(kind, "of", lambda self, ids: (together.append(len(ids)), own(self, ids))[1])
    assert same_mini_batches(DATASETS["grey levels"], torch.float32) == 9
    assert sum(together) == 33
    assert max(together) <= max(ahead, 4)


def test_padding_is_zeros() -> None:
    rows = [torch.ones(2, 3), torch.full((1, 3), 2.0)]
    assert padded(rows, 2).tolist() == [[[1, 1, 1], [1, 1, 1]], [[2, 2, 2], [0, 0, 0]]]
    assert torch.equal(padded(rows[:1] * 2, 2), torch.ones(2, 2, 3))
