"""What the modules of layers compute, against formulas and hand-made numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from fedsim.models.layers import (
    BatchNorm1d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAveragePool,
    GroupNorm1d,
    GroupNorm2d,
    Gru,
    KMaxPool,
    LastStep,
    Layer,
    Linear,
    Lstm,
    OneHot,
    PadShortcut,
    Residual,
    Shape,
    through,
)
from fedsim.models.parted import PartedModule
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import build, initial_parameters


def made(*layers: Layer, shape: Shape) -> PartedModule:
    """The layers and a linear one behind them, started as PyTorch does."""
    (features,) = Flatten("flatten").output_shape(through(layers, shape))
    table = LayerTable(
        input_shape=shape,
        extractor=layers,
        classifier=(Flatten("flatten"), Linear("fc", features, 2)),
        initialisation="torch_default",
    )
    module = build(table)
    for part, tensors in initial_parameters(table, np.random.default_rng(0)).items():
        module.load(part, tensors)
    return module


def test_k_max_pooling_keeps_the_order_of_the_series_and_the_first_of_equal_values():
    extractor = made(KMaxPool("pool", k=3), shape=(2, 6)).parts["extractor"]
    x = torch.tensor([[[3.0, -1.0, 5.0, 4.0, 0.0, 4.5], [0.0, 2.0, 0.0, 0.0, 0.0, 1.0]]], requires_grad=True)
    kept = extractor(x)
    assert kept.tolist() == [[[5.0, 4.0, 4.5], [0.0, 2.0, 1.0]]]
    kept.sum().backward()
    assert x.grad.tolist() == [[[0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 0, 1]]]


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32])
def test_tokens_become_ones_in_their_channel_and_0_becomes_nothing(dtype):
    extractor = made(OneHot("one_hot", 3), shape=(4,)).parts["extractor"]
    ones = extractor(torch.tensor([[1, 0, 3, 3]], dtype=dtype))
    assert ones.tolist() == [[[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]]


def test_a_look_up_is_a_linear_layer_of_the_one_hot_rows_and_row_0_is_never_trained():
    module = made(Embedding("embedding", 3, dimension=2), shape=(4,))
    weight = module.part_parameters("extractor")["embedding.weight"]
    found = module.parts["extractor"](torch.tensor([[1, 0, 3, 3]]))
    assert torch.equal(found[0], weight.detach()[[1, 0, 3, 3]].T)
    assert not weight[0].any() and weight[1:].all()
    found.sum().backward()
    assert weight.grad.tolist() == [[0, 0], [1, 1], [0, 0], [2, 2]]


def gated(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    """The last hidden state of a gated recurrent unit (Cho et al., 2014) on one series (channels, time)."""
    (w_r, w_z, w_n), (u_r, u_z, u_n), (b_r, b_z, b_n), (c_r, c_z, c_n) = (weight.chunk(3) for weight in weights)
    h = torch.zeros(1, len(b_r), dtype=x.dtype)
    for step in x.T.split(1):
        r = torch.sigmoid(step @ w_r.T + b_r + h @ u_r.T + c_r)
        z = torch.sigmoid(step @ w_z.T + b_z + h @ u_z.T + c_z)
        n = torch.tanh(step @ w_n.T + b_n + r * (h @ u_n.T + c_n))
        h = (1 - z) * n + z * h
    return h[0]


def remembered(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    """That of a long short-term memory with a forget gate (Gers et al., 2000)."""
    (w_i, w_f, w_g, w_o), (u_i, u_f, u_g, u_o), *biases = (weight.chunk(4) for weight in weights)
    b_i, b_f, b_g, b_o = (one + other for one, other in zip(*biases, strict=True))
    h = cell = torch.zeros(1, len(b_i), dtype=x.dtype)
    for step in x.T.split(1):
        enter, forget = torch.sigmoid(step @ w_i.T + h @ u_i.T + b_i), torch.sigmoid(step @ w_f.T + h @ u_f.T + b_f)
        cell = forget * cell + enter * torch.tanh(step @ w_g.T + h @ u_g.T + b_g)
        h = torch.sigmoid(step @ w_o.T + h @ u_o.T + b_o) * torch.tanh(cell)
    return h[0]


EQUATIONS = {Gru: gated, Lstm: remembered}
TWINS: dict[type[Layer], type[torch.nn.RNNBase]] = {Gru: torch.nn.GRU, Lstm: torch.nn.LSTM}
each_recurrent_unit = pytest.mark.parametrize("unit", EQUATIONS)


@each_recurrent_unit
def test_a_recurrent_unit_follows_its_equations(unit: type[Gru | Lstm]):
    module = made(unit("r", inputs=3, hidden=4), LastStep("last"), shape=(3, 5)).double()
    weights = [value.detach() for value in module.part_state("extractor").values()]
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((3, 5)))
    expected = EQUATIONS[unit](x, weights)
    with torch.no_grad():
        torch.testing.assert_close(module.parts["extractor"](x[None])[0], expected, rtol=1e-12, atol=1e-12)


@each_recurrent_unit
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_recurrent_layers_are_pytorchs_bit_for_bit(unit: type[Gru | Lstm], dtype: torch.dtype):
    """All states of two layers, and the gradients, which are those of the same sums in the same order."""
    module = made(unit("one", inputs=3, hidden=4), unit("two", inputs=4, hidden=6), shape=(3, 5)).to(dtype)
    twins = [TWINS[unit](*sizes, batch_first=True, dtype=dtype) for sizes in ((3, 4), (4, 6))]
    for layer, twin in zip(module.parts["extractor"], twins, strict=True):
        twin.load_state_dict(layer.state_dict())
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 3, 5))).to(dtype)
    states = module.parts["extractor"](x)
    expected = twins[1](twins[0](x.transpose(1, 2))[0])[0]  # (batch, time, hidden)
    assert torch.equal(states, expected.transpose(1, 2))
    states[:, :, -1].sum().backward()
    expected[:, -1].sum().backward()
    theirs = [weight.grad for twin in twins for weight in twin.parameters()]
    for mine, other in zip(module.part_parameters("extractor").values(), theirs, strict=True):
        assert other.any() and torch.equal(mine.grad, other)


@each_recurrent_unit
def test_a_recurrent_units_work_is_that_of_its_equations_matrix_products(unit: type[Gru | Lstm]):
    layer = unit("r", inputs=4, hidden=5)
    with FlopCounterMode(display=False) as counter:
        EQUATIONS[unit](torch.zeros(4, 7), [torch.zeros(shape) for shape in layer.parameter_shapes.values()])
    assert counter.get_total_flops() == 2 * layer.macs((4, 7))


def test_padded_shortcuts_take_every_second_pixel_and_add_channels_of_zeros():
    shortcut = Residual("r", (PadShortcut("pad", 1, 2, stride=2),), (PadShortcut("pad", 1, 2, stride=2),))
    image = torch.arange(9.0).reshape(1, 1, 3, 3)
    twice = made(shortcut, shape=(1, 3, 3)).parts["extractor"](image)
    assert twice.tolist() == [[[[0, 4], [12, 16]], [[0, 0], [0, 0]]]]


def test_averaging_all_axes_leaves_the_channels():
    extractor = made(GlobalAveragePool("pool"), shape=(2, 2, 2)).parts["extractor"]
    assert extractor(torch.arange(8.0).reshape(1, 2, 2, 2)).tolist() == [[1.5, 5.5]]


def test_normalisation_learns_its_statistics_and_uses_them_when_evaluated():
    module = made(BatchNorm1d("bn", 1), shape=(1, 2))
    x = torch.tensor([[[1.0, 3.0]], [[5.0, 7.0]]])  # mean 4, variance 5, unbiased 20 / 3
    normalised = module.train().parts["extractor"](x)
    torch.testing.assert_close(normalised.flatten(), torch.tensor([-3.0, -1.0, 1.0, 3.0]) / (5 + 1e-5) ** 0.5)
    state = module.part_state("extractor")
    assert list(state) == ["bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"]
    assert state["bn.running_mean"].item() == pytest.approx(0.1 * 4)
    assert state["bn.running_var"].item() == pytest.approx(0.9 + 0.1 * 20 / 3)
    evaluated = module.eval().parts["extractor"](x)
    torch.testing.assert_close(evaluated, (x - 0.4) / (0.9 + 2 / 3 + 1e-5) ** 0.5)
    assert not [buffer for buffer in module.buffers() if not buffer.is_floating_point()]


def test_group_normalisation_treats_each_sample_by_itself_in_training_and_in_tests():
    module = made(GroupNorm1d("gn", 4), shape=(4, 2))
    with torch.no_grad():
        module.part_parameters("extractor")["gn.weight"][1] = 2.0
        module.part_parameters("extractor")["gn.bias"][3] = 0.5
    x = torch.tensor(
        [[[1.0, 3.0], [5.0, 7.0], [0.0, 0.0], [0.0, 8.0]], [[9.0, 9.0], [9.0, 9.0], [1.0, 2.0], [3.0, 4.0]]]
    )
    # the first sample: mean 4 and variance 5 of channels 0 and 1, mean 2 and variance 12 of 2 and 3
    one, other = (5 + 1e-5) ** 0.5, (12 + 1e-5) ** 0.5
    first = [[-3 / one, -1 / one], [2 / one, 6 / one], [-2 / other, -2 / other], [0.5 - 2 / other, 0.5 + 6 / other]]
    for mode in (module.train(), module.eval()):
        normalised = mode.parts["extractor"](x)
        torch.testing.assert_close(normalised[0], torch.tensor(first))
        assert torch.equal(normalised[1:], mode.parts["extractor"](x[1:])), "whatever else is in the batch"
    assert list(module.part_state("extractor")) == ["gn.weight", "gn.bias"]


def test_group_normalisation_of_images_is_over_pixels_too():
    x = torch.from_numpy(np.random.default_rng(1).normal(3, 5, (2, 6, 3, 4)).astype(np.float32))
    normalised = made(GroupNorm2d("gn", 6, groups=3), shape=(6, 3, 4)).parts["extractor"](x)
    groups = normalised.reshape(2, 3, 2 * 3 * 4)
    torch.testing.assert_close(groups.mean(2), torch.zeros(2, 3), rtol=0, atol=1e-6)
    torch.testing.assert_close(groups.var(2, unbiased=False), torch.ones(2, 3), rtol=0, atol=1e-5)


def test_dropout_is_for_training_only():
    module = made(Dropout("dropout", 0.75), shape=(4000,))
    ones = torch.ones(1, 4000)
    assert torch.equal(module.eval().parts["extractor"](ones), ones)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dropped = module.train().parts["extractor"](ones)
    assert set(dropped.unique().tolist()) == {0.0, 4.0}
    kept = (dropped > 0).sum().item()  # binomial: mean 1000, deviation sqrt(750); a rate 10 % off is 3 deviations away
    assert abs(kept - 1000) < 4 * 750**0.5


def test_live_state_is_the_modules_own():
    module = made(BatchNorm1d("bn", 1), shape=(1, 2))
    with torch.no_grad():
        for value in module.part_state("extractor").values():
            value.fill_(2.0)
    assert torch.equal(module.eval().parts["extractor"](torch.full((1, 1, 2), 2.0)), torch.full((1, 1, 2), 2.0))
    assert list(module.part_parameters("extractor")) == ["bn.weight", "bn.bias"]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("bn.running_mean"),
        lambda state: state.update({"bn.other": torch.zeros(1)}),
        lambda state: state.update({"bn.weight": torch.zeros(2)}),
    ],
)
def test_a_part_of_other_names_or_shapes_is_not_loaded(change):
    module = made(BatchNorm1d("bn", 1), shape=(1, 2))
    state = {name: value.detach().clone() for name, value in module.part_state("extractor").items()}
    change(state)
    with pytest.raises(ValueError, match="part 'extractor' has the state"):
        module.load("extractor", state)
