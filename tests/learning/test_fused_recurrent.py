"""Recurrent layers in machine code: as near to float64 as PyTorch's own modules, in float32 and with rounded factors.

Of outputs and all gradients each error is at most 1.5 times PyTorch's in the median over shapes and seeds, and that of
all of a case together nowhere more than 3 times.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import product

import pytest
import torch
from layer_errors import Rounding, Sides, broken, draw, numbers, numbers_as_they_lie, seeded, started, wanting
from tiers import mostly_long
from torch import nn

from fedsim.learning.executors import matrix
from fedsim.learning.executors.fused import module, rounding
from fedsim.learning.executors.fused.recurrent import FusedRecurrent
from fedsim.learning.kernels.processor import has_bfloat16
from fedsim.learning.kernels.shapes import MatrixShape
from fedsim.models.layers import Gru, Lstm
from fedsim.models.lstm import LstmModel
from fedsim.models.torch_layers import LastStepModule, sequence
from fedsim.models.torch_module import build

UNITS = {"gru": Gru, "lstm": Lstm}
HIDDEN = (16, 32, 48, 64, 128)
SERIES = ((1, 1, 1, 1.0), (3, 5, 1, 1.0), (14, 10, 30, 1.0), (33, 33, 4, 1.0), (16, 7, 7, 5.0), (5, 3, 12, 20.0))
SERIES += ((17, 40, 3, 0.1), (2, 1, 50, 1.0))
"""Inputs, samples, steps and the deviation of values."""
AROUND: dict[str, Callable[[nn.Module], nn.Module]] = {"exact": lambda layer: layer, "rounded": Rounding}


def recurrent(unit: str, inputs: int, hidden: int, seed: int = 0) -> Sides:
    (layer,) = sequence((UNITS[unit]("unit", inputs=inputs, hidden=hidden),))
    layer = started(layer, seed)
    fused = FusedRecurrent.of(copy.deepcopy(layer))
    assert fused is not None
    return Sides(layer, fused)


@pytest.mark.drawn
@pytest.mark.parametrize("unit", UNITS)
def test_errors_of_recurrent_layers_are_pytorchs(unit: str) -> None:
    ratios = []
    for seed, (hidden, (inputs, samples, steps, size)) in enumerate(product(HIDDEN, SERIES)):
        generator = seeded(seed)
        x, d = draw(generator, samples, inputs, steps, deviation=size), draw(generator, samples, hidden, steps)
        ratios.append(recurrent(unit, inputs, hidden, seed).ratios(wanting(x), d))
    assert broken(ratios) == {}


@pytest.mark.parametrize(("unit", "around"), [("gru", "exact"), ("lstm", "exact"), ("lstm", "rounded")])
@pytest.mark.parametrize("samples", mostly_long(range(1, 41), now=[1, 2, 7, 9, 16, 33]))
def test_any_number_of_samples_is_each_by_itself(unit: str, around: str, samples: int) -> None:
    """Rows that fill no tile are what they are alone: states, and gradients of inputs."""
    generator, layer = seeded(1), AROUND[around](recurrent(unit, 5, 48).fused)
    x, d = draw(generator, samples, 5, 4), draw(generator, samples, 48, 4)
    found = numbers(layer, wanting(x), d)
    alone = [numbers(layer, wanting(one[None]), own[None]) for one, own in zip(x.detach(), d, strict=True)]
    for name, products in (("made", "exact"), ("d_input0", around)):  # PyTorch rounds what it makes of rounded factors
        most = {"rtol": 1e-5, "atol": 1e-6} if products == "exact" else {"rtol": 2.0**-7, "atol": 2.0**-7}
        torch.testing.assert_close(found[name], torch.cat([one[name] for one in alone]), **most)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("size", [1e3, 1e20])
def test_gates_of_large_values_are_open_or_shut(unit: str, size: float) -> None:
    """Where the exponential function would overflow, a gate is 0 or 1, and no number is lost."""
    generator, sides = seeded(2), recurrent(unit, 3, 16)
    inputs, d = wanting(draw(generator, 9, 3, 6, deviation=size)), draw(generator, 9, 16, 6)
    theirs, mine = sides.numbers(inputs, d)
    torch.testing.assert_close(mine["made"], theirs["made"], rtol=1e-4, atol=1e-5)
    assert all(one.isfinite().all() for one in mine.values())


@pytest.mark.parametrize(("unit", "around"), [("gru", "exact"), ("lstm", "exact"), ("lstm", "rounded")])
@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FFFFFFF, 0x7F800001, -1])
def test_what_is_no_number_stays_none_whatever_its_bits(unit: str, around: str, bits: int) -> None:
    sides, x = recurrent(unit, 3, 16), torch.zeros(2, 3, 5)
    x.view(torch.int32)[1, 2, 3] = bits
    theirs, mine = Sides(sides.pytorchs, AROUND[around](sides.fused)).numbers(wanting(x), torch.ones(2, 16, 5))
    assert theirs["made"].isnan().sum() == 2 * 16
    for name, one in theirs.items():
        assert not mine[name][one.isnan()].isfinite().any(), name
        assert mine[name][one.isfinite()].isfinite().all(), name


@pytest.mark.drawn
@pytest.mark.skipif(not has_bfloat16(), reason="this processor has no instructions for bfloat16")
def test_errors_of_rounded_lstms_are_pytorchs() -> None:
    """Under autocast, where factors are rounded."""
    ratios = []
    for seed, (hidden, (inputs, samples, steps, size)) in enumerate(product(HIDDEN, SERIES)):
        generator, sides = seeded(seed), recurrent("lstm", inputs, hidden, seed)
        x, d = draw(generator, samples, inputs, steps, deviation=size), draw(generator, samples, hidden, steps)
        ratios.append(Sides(Rounding(sides.pytorchs), Rounding(sides.fused)).ratios(wanting(x), d))
        assert ratios[-1]["all"] > 0.1, "nothing is rounded"
    assert broken(ratios) == {}


@pytest.mark.parametrize("compiled", [True, False])
def test_a_gru_never_rounds(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under autocast, whether products with the inputs are in machine code or PyTorch's."""
    if not compiled:
        monkeypatch.setattr(matrix, "product_kernels", lambda *about: None)
    generator, layer = seeded(3), recurrent("gru", 5, 32).fused
    x, d = wanting(draw(generator, 40, 5, 7)), draw(generator, 40, 32, 7)
    exact, found = (numbers(one, x, d) for one in (layer, Rounding(layer)))
    assert all(torch.equal(found[name], one) for name, one in exact.items())


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("around", AROUND)
def test_the_last_states_are_those_of_all(unit: str, around: str) -> None:
    """And so are their gradients, to the last bit: nobody asks for those of other states."""
    layer = recurrent(unit, 5, 48).pytorchs
    every, behind = FusedRecurrent.of(copy.deepcopy(layer)), LastStepModule()
    assert every is not None and not every.last
    alone = FusedRecurrent.of(copy.deepcopy(layer), [behind, nn.Linear(48, 3)])
    assert alone is not None and alone.last
    generator = seeded(5)
    x, d = wanting(draw(generator, 9, 5, 11)), draw(generator, 9, 48)
    theirs, mine = (numbers(AROUND[around](one), x, d) for one in (nn.Sequential(every, behind), alone))
    assert all(torch.equal(mine[name], one) for name, one in theirs.items())


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("around", AROUND)
def test_the_gradient_of_the_last_states_stays_as_it_was(unit: str, around: str) -> None:
    """It may be somebody else's too."""
    layer = FusedRecurrent.of(recurrent(unit, 5, 16).pytorchs, [LastStepModule()])
    assert layer is not None
    d = torch.ones(3, 16)
    AROUND[around](layer)(draw(seeded(6), 3, 5, 4)).backward(d)
    assert torch.equal(d, torch.ones(3, 16))


def test_without_instructions_for_it_no_lstm_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "has_bfloat16", lambda: False)
    layer, x, d = recurrent("lstm", 5, 32).fused, wanting(draw(seeded(1), 22, 5, 7)), draw(seeded(2), 22, 32, 7)
    exact, found = (numbers(one, x, d) for one in (layer, Rounding(layer)))
    assert all(torch.equal(found[name], one) for name, one in exact.items())


def test_neither_does_one_for_which_there_is_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """There oneDNN would refuse it."""
    monkeypatch.setattr(module, "has_bfloat16", lambda: False)
    model = module.fused(build(LstmModel(hidden=24).table((5, 7), 4)), rounded=True)
    (layer,) = (layer for layer in model.modules() if isinstance(layer, nn.LSTM))
    layer, generator = started(layer, 1), seeded(1)
    x, d = wanting(draw(generator, 9, 5, 7)), draw(generator, 9, 24, 7)
    exact, found = (numbers(one, x, d) for one in (layer, Rounding(layer)))
    assert all(torch.equal(found[name], one) for name, one in exact.items())


@pytest.mark.parametrize(("unit", "around"), [("gru", "exact"), ("lstm", "exact"), ("lstm", "rounded")])
def test_how_numbers_lie_in_memory_changes_no_bit(unit: str, around: str) -> None:
    layer = AROUND[around](recurrent(unit, 16, 48).fused)
    first, *others = numbers_as_they_lie(layer, draw(seeded(1), 3, 16, 9), draw(seeded(2), 3, 48, 9))
    assert all(torch.equal(other[name], one) for other in others for name, one in first.items())


@pytest.mark.parametrize("unit", UNITS)
def test_products_of_recurrent_layers_are_in_machine_code_where_there_is_some(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of small matrices too: there are as many rows as samples and steps."""
    asked: set[MatrixShape] = set()
    monkeypatch.setattr(matrix, "product_kernels", lambda shape, *about: asked.add(shape))
    numbers(recurrent(unit, 5, 16).fused, wanting(draw(seeded(1), 3, 5, 7)), draw(seeded(2), 3, 16, 7))
    gates = {"gru": 48, "lstm": 64}[unit]
    assert asked == {MatrixShape(*shape) for shape in ((16, gates), (gates, 16), (gates, 5))}


@pytest.mark.parametrize("layer", [nn.GRU(3, 8), nn.LSTM(3, 24), nn.RNN(3, 16), nn.Linear(3, 16)])
def test_other_recurrent_layers_stay_pytorchs(layer: nn.Module) -> None:
    assert FusedRecurrent.of(layer) is None
