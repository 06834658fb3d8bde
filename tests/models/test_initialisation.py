"""Where weights start: the bounds and distributions that the schemes promise, and nothing left to chance."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.models.layers import (
    BatchNorm1d,
    Conv1d,
    Conv2d,
    Embedding,
    Flatten,
    GroupNorm1d,
    Gru,
    LastStep,
    Linear,
    Lstm,
)
from fedsim.models.table import Initialisation, LayerTable
from fedsim.models.torch_module import build, initial_parameters

CONV = Conv2d("conv", in_channels=4, out_channels=100, kernel=5, padding=2)  # fan_in 100, fan_out 2500
FC = Linear("fc", inputs=400, outputs=200)


def table(initialisation: Initialisation) -> LayerTable:
    return LayerTable(
        input_shape=(4, 2, 2), extractor=(CONV, Flatten("f")), classifier=(FC,), initialisation=initialisation
    )


def start(initialisation: Initialisation, seed: int = 0) -> dict[str, np.ndarray]:
    parts = initial_parameters(table(initialisation), np.random.default_rng(seed))
    return {name: value.numpy() for values in parts.values() for name, value in values.items()}


BOUNDS = [  # scheme, parameter, bound by hand
    ("xavier_uniform", "conv.weight", sqrt(6 / (100 + 2500))),
    ("xavier_uniform", "fc.weight", sqrt(6 / (400 + 200))),
    ("torch_default", "conv.weight", 1 / sqrt(100)),
    ("torch_default", "fc.weight", 1 / sqrt(400)),
]


@pytest.mark.parametrize(("initialisation", "name", "bound"), BOUNDS)
def test_weights_are_uniform_within_the_schemes_bound(initialisation, name, bound):
    # n = 10,000 and 80,000 draws, ten equal bins: a bin holds n/10 with a standard deviation of sqrt(0.09 n), 3 % of it
    # or less. Bounds wrong by 10 % would empty half of an outer bin (or break the bound): more than ten deviations.
    scaled = start(initialisation)[name].ravel() / bound
    assert np.abs(scaled).max() <= 1 + 1e-6
    counts, _ = np.histogram(scaled, bins=10, range=(-1 - 1e-6, 1 + 1e-6))
    assert counts.sum() == scaled.size
    assert np.abs(counts - scaled.size / 10).max() < 4 * sqrt(0.09 * scaled.size)


@pytest.mark.parametrize(("initialisation", "name", "bound"), BOUNDS)
def test_weights_have_mean_zero_and_variance_a_third_of_the_squared_bound(initialisation, name, bound):
    # Four standard errors; the variance's, relative, is sqrt(0.8 / n) <= 0.9 %: a bound 10 % off shows at 20 of them.
    weights = start(initialisation)[name].astype(float)
    assert abs(weights.mean()) < 4 * bound / sqrt(3 * weights.size)
    assert weights.var() == pytest.approx(bound**2 / 3, rel=4 * sqrt(0.8 / weights.size))


def test_xavier_biases_are_zero_and_torch_default_biases_are_uniform_in_one_over_root_fan_in():
    xavier, default = start("xavier_uniform"), start("torch_default")
    assert not xavier["conv.bias"].any() and not xavier["fc.bias"].any()
    for name, bound in (("conv.bias", 1 / sqrt(100)), ("fc.bias", 1 / sqrt(400))):
        # the largest of n >= 100 uniform draws is below 0.85 of the bound with probability 0.85^100 < 1e-7
        assert 0.85 * bound < np.abs(default[name]).max() <= bound * (1 + 1e-6)


@pytest.mark.parametrize("name", ["conv", "fc"])
def test_torch_default_is_pytorchs_own_start(name):
    # Extremes of n >= 10,000 uniform draws are within 0.2 % of the bound but for exp(-20); biases as above.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        twin = nn.Conv2d(4, 100, 5, padding=2) if name == "conv" else nn.Linear(400, 200)
    ours = start("torch_default")
    weight = twin.weight.detach().numpy()
    assert np.abs(ours[f"{name}.weight"]).max() == pytest.approx(np.abs(weight).max(), rel=2e-3)
    assert np.abs(ours[f"{name}.bias"]).max() == pytest.approx(np.abs(twin.bias.detach().numpy()).max(), rel=0.15)
    assert ours[f"{name}.weight"].var() == pytest.approx(weight.var(), rel=6 * sqrt(0.8 / weight.size))


def test_numbers_are_the_generators_own_in_the_order_of_the_table():
    draws = np.random.default_rng(7).random(10_000 + 80_000)
    xavier = start("xavier_uniform", seed=7)
    for name, bound, values in (
        ("conv.weight", sqrt(6 / 2600), draws[:10_000]),
        ("fc.weight", sqrt(6 / 600), draws[10_000:]),
    ):
        np.testing.assert_array_equal(xavier[name].ravel(), ((2 * values - 1) * bound).astype(np.float32))


EVERY_SCHEME = ["xavier_uniform", "kaiming_normal", "torch_default"]
TOKENS, DIMENSION, HIDDEN, WIDER = 2000, 50, 60, 80


def start_of_a_series_model(initialisation: Initialisation) -> dict[str, np.ndarray]:
    """Of a look-up, a convolution of kernel 4 without bias, two normalisations and two recurrent units, by layer."""
    table = LayerTable(
        input_shape=(8,),
        extractor=(
            Embedding("embedding", tokens=TOKENS - 1, dimension=DIMENSION),
            Conv1d("conv", DIMENSION, 100, kernel=4, bias=False),
            BatchNorm1d("bn", 100),
            GroupNorm1d("gn", 100),
            Gru("gru", inputs=100, hidden=HIDDEN),
            Lstm("lstm", inputs=HIDDEN, hidden=WIDER),
            LastStep("last"),
        ),
        classifier=(Linear("fc", WIDER, 3),),
        initialisation=initialisation,
        takes_ids=True,
    )
    parts = initial_parameters(table, np.random.default_rng(0))
    assert list(parts["extractor"]) == list(table.state_shapes("extractor"))
    return {name: value.numpy().astype(float) for values in parts.values() for name, value in values.items()}


@pytest.mark.parametrize(
    ("initialisation", "name", "bound"),
    [
        ("xavier_uniform", "embedding.weight", sqrt(6 / (TOKENS + DIMENSION))),
        ("xavier_uniform", "conv.weight", sqrt(6 / (4 * 50 + 4 * 100))),
        ("xavier_uniform", "gru.weight_ih_l0", sqrt(6 / (100 + HIDDEN))),
        ("xavier_uniform", "gru.weight_hh_l0", sqrt(6 / (HIDDEN + HIDDEN))),
        ("xavier_uniform", "lstm.weight_ih_l0", sqrt(6 / (HIDDEN + WIDER))),
        ("xavier_uniform", "lstm.weight_hh_l0", sqrt(6 / (WIDER + WIDER))),
        ("torch_default", "conv.weight", 1 / sqrt(4 * 50)),
        ("torch_default", "gru.weight_ih_l0", 1 / sqrt(HIDDEN)),
        ("torch_default", "gru.weight_hh_l0", 1 / sqrt(HIDDEN)),
        ("torch_default", "lstm.weight_ih_l0", 1 / sqrt(WIDER)),
        ("torch_default", "lstm.weight_hh_l0", 1 / sqrt(WIDER)),
    ],
)
def test_every_layer_has_its_own_fans(initialisation, name, bound):
    # n >= 10,800 uniform draws: the largest is within 0.2 % of the bound but for exp(-20), the mean square, a third of
    # its square, has a relative standard error of sqrt(0.8 / n) < 0.9 %. Row 0 of the look-up is none of them.
    weights = start_of_a_series_model(initialisation)[name]
    draws = weights[1:] if name.startswith("embedding") else weights
    assert (1 - 2e-3) * bound < np.abs(draws).max() <= bound * (1 + 1e-6)
    assert (draws**2).mean() == pytest.approx(bound**2 / 3, rel=4 * sqrt(0.8 / draws.size))


@pytest.mark.parametrize(
    ("initialisation", "name", "deviation"),
    [
        ("kaiming_normal", "conv.weight", sqrt(2 / (4 * 50))),
        ("kaiming_normal", "gru.weight_ih_l0", sqrt(2 / 100)),
        ("kaiming_normal", "gru.weight_hh_l0", sqrt(2 / HIDDEN)),
        ("kaiming_normal", "lstm.weight_ih_l0", sqrt(2 / HIDDEN)),
        ("kaiming_normal", "lstm.weight_hh_l0", sqrt(2 / WIDER)),
        ("kaiming_normal", "embedding.weight", 1.0),
        ("torch_default", "embedding.weight", 1.0),
    ],
)
def test_normal_starts_have_their_deviation_and_a_normals_kurtosis(initialisation, name, deviation):
    # The relative standard error of the mean square is sqrt(2 / n), of the fourth moment, 3 sigma^4, sqrt(32 / 3n);
    # with n >= 10,800, four of them are 5.5 % and 13 %. A uniform's fourth moment would be 40 % off.
    weights = start_of_a_series_model(initialisation)[name]
    scaled = (weights[1:] if name.startswith("embedding") else weights) / deviation
    assert abs(scaled.mean()) < 4 / sqrt(scaled.size)
    assert (scaled**2).mean() == pytest.approx(1, rel=4 * sqrt(2 / scaled.size))
    assert (scaled**4).mean() == pytest.approx(3, rel=4 * sqrt(32 / 3 / scaled.size))


def test_kaiming_normal_of_images_and_vectors_counts_the_inputs_alone():
    weights = start("kaiming_normal")
    for name, fan_in in (("conv.weight", 4 * 25), ("fc.weight", 400)):
        draws = weights[name].astype(float)
        assert (draws**2).mean() == pytest.approx(2 / fan_in, rel=4 * sqrt(2 / draws.size))
    assert not weights["conv.bias"].any() and not weights["fc.bias"].any()


@pytest.mark.parametrize("initialisation", EVERY_SCHEME)
def test_normalisation_starts_as_the_identity_and_token_0_as_zero_whatever_the_scheme(initialisation):
    weights = start_of_a_series_model(initialisation)
    for kind, value in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
        assert (weights[f"bn.{kind}"] == value).all()
        assert f"gn.{kind}" not in weights or (weights[f"gn.{kind}"] == value).all()
    assert not weights["embedding.weight"][0].any() and weights["embedding.weight"][1:].any()
    for unit, width in (("gru", HIDDEN), ("lstm", WIDER)):
        biases = np.concatenate([weights[f"{unit}.bias_ih_l0"], weights[f"{unit}.bias_hh_l0"]])
        if initialisation == "torch_default":  # the largest of 360 uniform draws or more: 0.85^360 < 1e-25
            assert 0.85 / sqrt(width) < np.abs(biases).max() <= 1 / sqrt(width) * (1 + 1e-6)
        else:
            assert not biases.any(), "a forget gate starts like the others"


@pytest.mark.parametrize(("unit", "twin"), [("gru", nn.GRU(100, HIDDEN)), ("lstm", nn.LSTM(HIDDEN, WIDER))])
def test_torch_default_of_a_recurrent_unit_is_pytorchs_own_start(unit: str, twin: nn.RNNBase):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        twin.reset_parameters()
    ours = start_of_a_series_model("torch_default")
    for name, value in twin.named_parameters():
        other = value.detach().numpy()
        rel = 6 * sqrt(0.8 / other.size)
        assert (ours[f"{unit}.{name}"] ** 2).mean() == pytest.approx((other**2).mean(), rel=rel)


@pytest.mark.parametrize("initialisation", EVERY_SCHEME)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones(initialisation):
    torch.manual_seed(1)
    first = start(initialisation)
    torch.manual_seed(2)
    again, other = start(initialisation), start(initialisation, seed=1)
    assert {name: value.tobytes() for name, value in first.items()} == {name: v.tobytes() for name, v in again.items()}
    assert not np.array_equal(first["fc.weight"], other["fc.weight"])


def test_schemes_start_differently():
    assert len({start(scheme)["fc.weight"].tobytes() for scheme in EVERY_SCHEME}) == len(EVERY_SCHEME)


def test_building_draws_nothing_from_torch_and_starts_from_zero():
    before = torch.random.get_rng_state()
    module = build(table("torch_default"))
    assert torch.equal(before, torch.random.get_rng_state())
    assert not any(parameter.any() for parameter in module.parameters())
    assert {parameter.device.type for parameter in module.parameters()} == {"cpu"}
