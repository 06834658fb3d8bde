"""What each feature skew does to a sample: the law of the noise, the geometry of the rotation, and what is stored."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import ndimage
from tiers import drawn

from fedsim.data.encoding import AS_IT_IS, Affine
from fedsim.data.feature_skew import AT_ONCE, Noise, Rotation, rotated
from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.errors import UserError

VALUES = 40_000
"""Of each client: the relative standard error of a variance is the root of 2/40,000, 0.7 %."""
FOUR_ERRORS = 4 * np.sqrt(2 / VALUES)


def raw_of(x: np.ndarray, encoding: Affine = AS_IT_IS) -> RawDataset:
    return RawDataset(x, np.zeros(len(x), np.int64), 1, 1.0, encoding=encoding)


def residuals(skew, x: np.ndarray, clients: Clients, encoding: Affine = AS_IT_IS) -> np.ndarray:
    """(clients, VALUES) what is added to the decoded samples of each, who hold equally many, in order."""
    held = list(np.arange(len(x)).reshape(clients.total, -1))
    raw = raw_of(x, encoding)
    skewed = skew.apply(raw, clients, held, np.random.default_rng(1))
    return (encoding.decode(skewed) - encoding.decode(x)).reshape(clients.total, -1)


def assert_variances(noise: np.ndarray, expected: list[float]) -> None:
    """4 standard errors, below 3 %, and a mean of 0 within as many."""
    assert (noise**2).mean(1) == pytest.approx(np.array(expected), rel=FOUR_ERRORS)
    assert (np.abs(noise.mean(1)) <= 4 * np.sqrt(np.array(expected) / VALUES)).all()


# --- noise ---


def test_client_i_of_n_has_i_nths_of_the_variance():
    noise = residuals(Noise(variance=0.5), np.full((4 * VALUES // 10, 10), 3.0, np.float32), Clients(4))
    assert_variances(noise, [0.125, 0.25, 0.375, 0.5])


def test_the_noise_of_two_values_is_independent():
    noise = residuals(Noise(), np.zeros((2 * VALUES // 10, 10), np.float32), Clients(2))
    for first, second in ((noise[0, ::2], noise[0, 1::2]), (noise[0], noise[1])):
        assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(len(first))


def test_noise_by_factory_is_that_of_its_number():
    clients = Clients(4, np.array([0, 0, 1, 1]), unseen=2)
    noise = residuals(Noise(variance=0.5, by="factory"), np.zeros((6 * VALUES // 10, 10), np.float32), clients)
    assert_variances(noise, [0.25, 0.25, 0.5, 0.5, 0.25, 0.5])


def test_unseen_clients_are_as_noisy_as_those_who_take_part():
    """Two of them count as clients 2 and 4 of 4."""
    noise = residuals(Noise(variance=0.4), np.zeros((6 * VALUES // 10, 10), np.float32), Clients(4, unseen=2))
    assert_variances(noise, [0.1, 0.2, 0.3, 0.4, 0.2, 0.4])


@pytest.mark.parametrize(("stored", "scale"), [(np.uint8, 1 / 255), (np.int16, 2.0**-15), (np.uint8, -1 / 255)])
def test_the_variance_is_that_of_decoded_samples_however_they_are_stored(stored, scale):
    """Rounding adds 1/12 of a stored step squared; 120 is far from the smallest and the largest of them."""
    x = np.full((2 * VALUES // 10, 10), 120, stored)
    noise = residuals(Noise(variance=0.008), x, Clients(2), Affine(scale=scale, offset=0.5))
    assert_variances(noise, [0.004 + scale**2 / 12, 0.008 + scale**2 / 12])


def test_a_sensor_saturates():
    """Noise that makes black darker is lost, all below half a step, and so on white; nothing wraps around."""
    x = np.repeat(np.array([0, 255], np.uint8), VALUES)[:, None]
    skewed = Noise(variance=0.01).apply(
        raw_of(x, Affine(1 / 255)), Clients(1), [np.arange(2 * VALUES)], np.random.default_rng(1)
    )
    assert skewed.dtype == np.uint8
    black, white = skewed[:VALUES], skewed[VALUES:]
    assert black.max() < 130 < white.min()
    lost = NormalDist().cdf(0.5 / (0.1 * 255))
    for at_the_end in (black == 0, white == 255):
        assert abs(at_the_end.mean() - lost) < 4 * 0.5 / np.sqrt(VALUES)


def test_samples_that_nobody_holds_have_no_noise():
    x = np.zeros((30, 5), np.float32)
    skewed = Noise().apply(raw_of(x), Clients(2), [np.arange(10), np.arange(10, 20)], np.random.default_rng(1))
    assert (skewed[:20] != 0).all()
    assert (skewed[20:] == 0).all()


def test_the_noise_of_a_sample_does_not_depend_on_how_many_are_made_at_once(monkeypatch):
    x = np.zeros((AT_ONCE // 100, 3), np.float32)
    whole = residuals(Noise(), x, Clients(1))
    monkeypatch.setattr("fedsim.data.feature_skew.AT_ONCE", 7)
    assert np.array_equal(residuals(Noise(), x, Clients(1)), whole)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("scale", "variance"), [(0.0, 1e-18), (1e-30, 1e18), (-1e-40, 0.1)])
def test_noise_that_no_stored_number_can_hold_is_refused(dtype, scale, variance):
    raw = raw_of(np.ones((4, 3), dtype), Affine(scale=scale))
    with pytest.raises(UserError, match="such noise does not fit there; lower it") as refusal:
        Noise(variance=variance).apply(raw, Clients(1), [np.arange(4)], np.random.default_rng(1))
    assert str(refusal.value).startswith(f"variance={variance:g}: ")
    assert f"multiplied by {abs(scale):g}, " in str(refusal.value)


@pytest.mark.parametrize("scale", [1e-27, 1.0, 1e18])
def test_the_largest_noise_that_fits_is_finite_in_store_and_decoded(scale):
    raw = raw_of(np.ones((4, 3), np.float32), Affine(scale=scale))
    skewed = Noise(variance=1e18).apply(raw, Clients(1), [np.arange(4)], np.random.default_rng(1))
    assert np.isfinite(skewed).all()
    assert np.isfinite(raw.encoding.decode(skewed)).all()


# --- rotation ---

images = np.random.default_rng(1).random((3, 2, 9, 9)).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (2, 3, 7, 7), (2, 1, 6, 9), (1, 1, 1, 5)])
@pytest.mark.parametrize("degrees", [0, 15, 33.3, -70, 90, 123, 180, 359])
def test_a_turn_is_that_of_scipy(shape, degrees):
    source = np.random.default_rng(1).random(shape).astype(np.float32)
    expected = ndimage.rotate(source, degrees, axes=(2, 3), reshape=False, order=1, mode="nearest")
    assert rotated(source, degrees) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("quarters", range(-4, 5))
def test_quarter_turns_move_pixels_and_change_none(quarters):
    """Counter-clockwise, as numpy's."""
    assert np.array_equal(rotated(images, 90 * quarters), np.rot90(images, quarters, axes=(2, 3)))


@drawn(60)
@given(degrees=st.floats(-360, 360), value=st.floats(0, 255, width=32))
def test_a_background_stays_what_it_is(degrees, value):
    assert (rotated(np.full((1, 1, 6, 8), value, np.float32), degrees) == np.float32(value)).all()


@drawn(60)
@given(degrees=st.floats(-360, 360), seed=st.integers(0, 2**32))
def test_a_turn_leaves_no_range(degrees, seed):
    source = np.random.default_rng(seed).random((2, 1, 8, 8)).astype(np.float32)
    turned = rotated(source, degrees)
    assert source.min() - 1e-6 <= turned.min() <= turned.max() <= source.max() + 1e-6


def apply_rotation(rotation: Rotation, clients: Clients, x: np.ndarray) -> np.ndarray:
    held = list(np.arange(clients.total * (len(x) // clients.total)).reshape(clients.total, -1))
    return rotation.apply(raw_of(x), clients, held, np.random.default_rng(1))


def test_factories_take_the_angles_in_turn():
    x = np.random.default_rng(1).random((10, 1, 7, 7)).astype(np.float32)
    clients = Clients(4, np.array([0, 1, 1, 2]), unseen=1)
    turned = apply_rotation(Rotation(degrees=[90.0, 180.0]), clients, x)
    for sample, quarters in enumerate([1, 1, 2, 2, 2, 2, 1, 1, 1, 1]):
        assert np.array_equal(turned[sample], np.rot90(x[sample], quarters, axes=(1, 2)))


def test_one_number_spreads_the_angles_evenly():
    x = np.random.default_rng(1).random((6, 1, 7, 7)).astype(np.float32)
    turned = apply_rotation(Rotation(degrees=90.0, by="client"), Clients(5), x)
    for sample, degrees in enumerate([-90, -45, 0, 45, 90]):
        assert np.array_equal(turned[sample], rotated(x[sample : sample + 1], degrees)[0])
    assert np.array_equal(turned[5], x[5])  # nobody's


def test_clients_are_not_looked_through_for_each_angle(monkeypatch):
    """Nobody would wait for a hundred thousand clients, each with an angle of its own."""
    seen = 0

    def flatnonzero(array):
        nonlocal seen
        seen += array.size
        return np.nonzero(np.ravel(array))[0]

    monkeypatch.setattr(np, "flatnonzero", flatnonzero)
    clients = 200
    x = np.random.default_rng(1).random((clients, 1, 3, 3)).astype(np.float32)
    turned = apply_rotation(Rotation(degrees=180.0, by="client"), Clients(clients), x)
    assert np.array_equal(turned[-1], np.rot90(x[-1], 2, axes=(1, 2)))
    assert seen <= clients


def test_grey_levels_are_rounded_to_the_nearest():
    x = np.random.default_rng(1).integers(0, 256, (4, 1, 9, 9)).astype(np.uint8)
    turned = apply_rotation(Rotation(degrees=[37.0]), Clients(1), x)
    assert turned.dtype == np.uint8
    assert np.abs(turned - rotated(x, 37.0)).max() <= 0.5


def test_a_spread_over_one_factory_is_refused():
    with pytest.raises(UserError, match=r"degrees=30 is spread evenly over each factory, and there is only one"):
        apply_rotation(Rotation(), Clients(3), images)


@pytest.mark.parametrize("shape", [(4, 12), (4, 3, 12)])
def test_only_images_can_be_turned(shape):
    with pytest.raises(UserError, match=r"rotation needs images \(channels, rows, columns\), and a sample of .* is \("):
        apply_rotation(Rotation(by="client"), Clients(2), np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("skew", "options"),
    [
        (Noise, {"variance": 0.0}),
        (Noise, {"by": "cell"}),
        (Rotation, {"degrees": []}),
        (Rotation, {"degrees": [400.0]}),
        (Rotation, {"degrees": 0.0}),
        (Rotation, {"degrees": "30"}),
    ],
)
def test_a_key_outside_its_range_is_refused(skew, options):
    with pytest.raises(ValidationError):
        skew(**options)
