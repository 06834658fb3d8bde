"""A step of SGD in the plain loop: for all weights together on a device, to the bits of one weight after the other."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedsim.learning.executors import plain
from fedsim.learning.training import TrainingSettings


@pytest.mark.parametrize(("place", "together"), [("cpu", False), ("meta", True)])
def test_on_a_device_a_step_is_one_operation_for_all_weights(
    place: str, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(plain, "sgd", lambda *_, **options: asked.append(options))
    weights = {name: torch.zeros(2, device=place) for name in "ab"}
    settings = TrainingSettings(learning_rate=0.1, batch_size=1, momentum=0.9)
    plain._step(weights, weights, dict.fromkeys(weights), settings)
    assert [options["foreach"] for options in asked] == [together]


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"weight_decay": 0.1, "momentum": 0.9}])
def test_one_operation_for_all_weights_gives_the_same_bits(
    options: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, settings = plain.sgd, TrainingSettings(learning_rate=0.1, batch_size=1, **options)
    found = []
    for foreach in (False, True):
        monkeypatch.setattr(plain, "sgd", lambda *given, foreach, to=foreach, **more: own(*given, foreach=to, **more))
        draw = torch.Generator().manual_seed(1)
        weights = {name: torch.randn(size, generator=draw) for name, size in (("a", 7), ("b", 1000), ("c", 3))}
        momenta: dict[str, torch.Tensor | None] = dict.fromkeys(weights)
        for _ in range(4):
            gradients = {name: torch.randn(len(one), generator=draw) for name, one in weights.items()}
            plain._step(weights, gradients, momenta, settings)
        found.append(weights)
    assert all(torch.equal(found[0][name], one) for name, one in found[1].items())
    assert all(one.isfinite().all() for one in found[0].values())
