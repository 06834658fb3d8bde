"""Training on a stream: the samples are those of the capture, whatever was trained before, and the key says so."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import small_learner
import torch
from learned import train
from small_learner import TRAINING, Small, small, tensors

from fedsim.data.captures import Capture, capture_samples
from fedsim.data.stream.drift import Recurring
from fedsim.data.stream.settings import Augmentation, StreamSettings
from fedsim.kernel.streams import Streams
from fedsim.learning.batches import Seen
from fedsim.learning.executors.serial import Serial
from fedsim.learning.objectives.plain import Plain

PLAIN_DATA = small_learner.data


@pytest.fixture
def streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    """The linear model on random images that are augmented and come in fours."""
    stream = StreamSettings(samples=4, augmentation=Augmentation())
    data = dataclasses.replace(PLAIN_DATA(), stream=stream)
    monkeypatch.setattr(small_learner, "data", lambda: data)
    run = small(tmp_path, executor=Serial(small_learner.table(), data))
    yield run
    run.store.close()


def trained(learner: Small, capture: Capture | None, *, use: int = 0) -> dict[str, torch.Tensor]:
    start = learner.learner.initial_model()
    model = train(learner.learner, start, 1, Plain(), use=use, capture=capture).model
    learner.learner.keep_final(model)
    return tensors(model)


def test_training_is_the_plain_loop_on_the_captured_samples(streamed: Small) -> None:
    """W - lr * gradient of the mean cross-entropy, mini-batch by mini-batch, written out for a linear model."""
    capture = Capture(3, 4)
    start = streamed.learner.initial_model()
    streamed.learner.keep_final(start)
    weight, bias = (tensor.clone() for tensor in tensors(start).values())
    x, y = capture_samples(small_learner.data(), 1, capture, Streams(1))
    rng = Streams(1)("batches", 1, 0).generator()
    for _ in range(TRAINING.epochs):
        rows = rng.permutation(4)  # one mini-batch of four
        inputs, labels = torch.from_numpy(x[rows]).flatten(1), torch.from_numpy(y[rows])
        errors = torch.softmax(inputs @ weight.T + bias, 1) - torch.eye(3)[labels]
        weight -= TRAINING.learning_rate * errors.T @ inputs / 4
        bias -= TRAINING.learning_rate * errors.mean(0)
    expected = trained(streamed, capture)
    for wanted, name in ((weight, "classifier.fc.weight"), (bias, "classifier.fc.bias")):
        assert torch.allclose(expected[name], wanted, atol=1e-6)


def test_what_was_trained_before_changes_nothing(streamed: Small) -> None:
    alone = trained(streamed, Capture(8, 4))
    trained(streamed, Capture(0, 4), use=1)
    again = trained(streamed, Capture(8, 4))
    assert all(torch.equal(alone[name], again[name]) for name in alone)


def test_the_key_knows_the_capture_and_how_it_is_changed(streamed: Small) -> None:
    start = streamed.learner.initial_model()

    def key(capture: Capture | None) -> str:
        trained = train(streamed.learner, start, 1, Plain(), capture=capture)
        return trained.model["classifier"].node.key

    keys = [key(None), key(Capture(0, 4)), key(Capture(4, 4)), key(Capture(0, 3)), key(Capture(0, 4, (0.5, 0.5)))]
    assert len(set(keys)) == len(keys)
    assert key(Capture(0, 4)) == keys[1]


def test_the_key_knows_how_images_are_changed_and_how_strong_the_drift_is() -> None:
    streams = [
        StreamSettings(samples=4, augmentation=augmentation, drift=drift)
        for augmentation in (None, Augmentation(), Augmentation(brightness=0.2), Augmentation(area=(0.5, 1.0)))
        for drift in (
            None,
            Recurring(length=1.0),
            Recurring(length=1.0, strength=0.5),
            Recurring(length=1.0, groups=(("0",), ("1",))),
            Recurring(length=1.0, groups=(("0",), ("2",))),
        )
    ]
    said = [
        Seen.of(dataclasses.replace(PLAIN_DATA(), stream=stream), 1, Capture(0, 4, (0.5, 0.5))) for stream in streams
    ]
    assert all(said.count(one) == 1 for one in said)


def test_more_of_the_stream_is_other_samples(streamed: Small) -> None:
    one, other = trained(streamed, Capture(0, 4)), trained(streamed, Capture(4, 4))
    assert not np.array_equal(one["classifier.fc.weight"], other["classifier.fc.weight"])
