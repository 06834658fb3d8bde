"""Where fused layers meet what they were not made for: each has been wrong once."""

from __future__ import annotations

import copy

import pytest
import torch
from random_waves import outcome, random_wave, world
from torch import nn

from fedsim.learning.executors.fused.normalised import FusedNormalisation
from fedsim.learning.executors.fused.series import ConvolutionOfSeries
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.view import Seen, View
from fedsim.learning.kernels import processor
from fedsim.learning.objectives.distilled import Distilled
from fedsim.models.resnet import ResNet
from fedsim.models.softmax import Softmax


@pytest.mark.parametrize(("inputs", "stride", "padding", "length"), [(8, 1, 1, 20), (3, 2, 0, 21), (15, 3, 2, 17)])
def test_a_narrow_convolution_hands_gradients_back_too(inputs: int, stride: int, padding: int, length: int) -> None:
    torch.manual_seed(1)
    theirs = nn.Conv1d(inputs, 16, 5, stride, padding)
    mine = ConvolutionOfSeries.of(copy.deepcopy(theirs))
    assert mine is not None
    given = torch.randn(4, inputs, length)
    found = []
    for layer in (mine, theirs):
        x = given.clone().requires_grad_()
        layer(x).cos().sum().backward()
        found.append(x.grad)
    assert torch.allclose(*found, rtol=1e-5, atol=1e-6)


def test_all_weights_may_take_their_step_in_the_backward_pass() -> None:
    place = world(Softmax().table((3, 48, 48), 10), seed=1)
    wave = random_wave(place, seed=1)
    made = outcome(Serial(place.table, place.dataset), place, wave)
    assert all(tensor.isfinite().all() for tensors in made.values() for tensor in tensors.values())


def test_terms_of_objectives_are_worked_out_in_the_type_of_the_scores() -> None:
    table = ResNet(normalisation="group").table((3, 8, 8), 4)
    place = world(table, seed=1)
    trainer = PlainTrainer(table, place.dataset, "cpu", "bfloat16")
    objective = Distilled(coefficient=1.0)
    view = View(objective, trainer._module, lambda role: trainer._module, on_rows=False)
    draws = torch.Generator().manual_seed(1)
    scores = torch.randn(5, 4, generator=draws)
    near = (scores + 0.01 * torch.randn(5, 4, generator=draws)).bfloat16()
    (term,) = view.terms(scores, Seen(None, {}, {objective.scores[0]: near}))
    (exact,) = view.terms(scores.double(), Seen(None, {}, {objective.scores[0]: near}))
    assert term.dtype == torch.float32
    assert float(term) == pytest.approx(float(exact), rel=1e-3)


def test_without_a_fused_multiply_add_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_features", lambda: {"avx"})
    table = ResNet().table((3, 8, 8), 4)
    trainer = PlainTrainer(table, world(table, seed=1).dataset, "cpu", "float32")
    assert not any(isinstance(layer, FusedNormalisation) for layer in trainer._module.modules())
