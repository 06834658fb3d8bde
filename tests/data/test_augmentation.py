"""Crops and brightness do what they say, and nothing more."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import kstest, uniform
from tiers import drawn

from fedsim.data.captures import augmented, resized_crops
from fedsim.data.stream.settings import Augmentation

NOTHING = Augmentation(brightness=0.0, area=(1.0, 1.0), aspect=(1.0, 1.0))


def images(seed: int, shape: tuple[int, ...] = (4, 2, 7, 9)) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def test_no_change_is_no_change() -> None:
    assert np.array_equal(augmented(images(1), NOTHING, np.random.default_rng(1)), images(1))


@drawn(60)
@given(seed=st.integers(0, 2**32), rows=st.integers(2, 30), columns=st.integers(2, 30))
def test_a_crop_is_what_pytorch_samples_there(seed: int, rows: int, columns: int) -> None:
    """Oracle: ``grid_sample`` with border padding and ``align_corners=False``, the same convention of pixel centres."""
    rng = np.random.default_rng(seed)
    source = images(seed, (3, 2, rows, columns))
    width, height = rng.uniform(0.2, 1.0, (2, 3))
    left, top = rng.random((2, 3)) * (1 - np.array([width, height]))
    x = left[:, None] + width[:, None] * (np.arange(columns) + 0.5) / columns
    y = top[:, None] + height[:, None] * (np.arange(rows) + 0.5) / rows
    grid = np.stack(np.broadcast_arrays(2 * x[:, None, :] - 1, 2 * y[:, :, None] - 1), axis=-1)
    expected = torch.nn.functional.grid_sample(
        torch.from_numpy(source).double(), torch.from_numpy(grid), padding_mode="border", align_corners=False
    )
    assert resized_crops(source, left, top, width, height) == pytest.approx(expected.numpy(), abs=1e-5)


@drawn(40)
@given(seed=st.integers(0, 2**32), brightness=st.floats(0, 0.9))
def test_a_grey_wall_only_changes_its_brightness(seed: int, brightness: float) -> None:
    wall = np.full((5, 1, 6, 6), 0.5, np.float32)
    seen = augmented(wall, Augmentation(brightness=brightness), np.random.default_rng(seed))
    assert (np.ptp(seen, axis=(1, 2, 3)) < 1e-6).all()
    assert (np.abs(seen[:, 0, 0, 0] / 0.5 - 1) <= brightness + 1e-6).all()


def test_brightness_is_uniform_and_saturates() -> None:
    """10,000 draws: 4 standard errors of the mean of a uniform factor in 0.8 to 1.2 are 0.0046."""
    settings = Augmentation(brightness=0.2, area=(1.0, 1.0), aspect=(1.0, 1.0))
    factor = (
        augmented(np.full((10_000, 1, 1, 2), 0.5, np.float32), settings, np.random.default_rng(1))[:, 0, 0, 0] / 0.5
    )
    assert abs(factor.mean() - 1.0) < 4 * 0.2 / np.sqrt(3 * 10_000)
    assert factor.std() == pytest.approx(0.2 / np.sqrt(3), rel=0.03)
    white = augmented(np.ones((100, 1, 2, 2), np.float32), settings, np.random.default_rng(1))
    assert white.max() == 1.0


def test_crops_have_the_stated_area_and_stay_inside() -> None:
    """On a ramp from left to right and one from top to bottom, the slopes tell width and height of the crop."""
    side, number = 16, 4_000
    ramp = (np.arange(side, dtype=np.float32) + 0.5) / side
    x, y = np.broadcast_arrays(ramp[None, :], ramp[:, None])
    both = np.broadcast_to(np.stack([x, y]), (number, 2, side, side)).astype(np.float32)
    settings = Augmentation(brightness=0.0, area=(0.5, 0.9), aspect=(0.8, 1.2))
    seen = augmented(both, settings, np.random.default_rng(3))
    middle = slice(side // 4, side // 2 + 1)
    width = np.diff(seen[:, 0, 0, middle], axis=-1).mean(-1) * side
    height = np.diff(seen[:, 1, middle, 0], axis=-1).mean(-1) * side
    area, aspect = width * height, width / height
    assert area.min() > 0.49
    assert area.max() < 0.91
    assert abs(area.mean() - 0.7) < 4 * 0.4 / np.sqrt(12 * number) + 1e-3
    assert aspect.min() > 0.79
    assert aspect.max() < 1.21
    assert abs(np.log(aspect).mean() - np.log(0.8 * 1.2) / 2) < 4 * np.log(1.5) / np.sqrt(12 * number) + 1e-3


@pytest.mark.parametrize("aspect", [2.0, 0.5])
def test_crops_lie_anywhere_in_the_image(aspect: float) -> None:
    """Of half of the area, as wide as the image or as high; the test of Kolmogorov and Smirnov errs in 1 of 10,000."""
    side, number = 8, 2_000
    ramp = (np.arange(side, dtype=np.float32) + 0.5) / side
    x, y = np.broadcast_arrays(ramp[None, :], ramp[:, None])
    both = np.broadcast_to(np.stack([x, y]), (number, 2, side, side)).astype(np.float32)
    settings = Augmentation(brightness=0.0, area=(0.5, 0.5), aspect=(aspect, aspect))
    seen = augmented(both, settings, np.random.default_rng(3))
    middle = seen[:, :, side // 2 - 1 : side // 2 + 1, side // 2 - 1 : side // 2 + 1].mean(axis=(2, 3))
    whole, half = middle.T if aspect > 1 else middle.T[::-1]
    assert whole == pytest.approx(0.5, abs=1e-5)
    assert kstest(half, uniform(0.25, 0.5).cdf).pvalue > 1e-4


def test_every_image_has_its_own_draws_whatever_the_others_are() -> None:
    source = images(5)
    together = augmented(source, Augmentation(), np.random.default_rng(7))
    changed = source.copy()
    changed[0] = 0.0
    assert np.array_equal(augmented(changed, Augmentation(), np.random.default_rng(7))[1:], together[1:])


@pytest.mark.parametrize(
    "settings",
    [{"brightness": 1.0}, {"area": [0.9, 0.8]}, {"area": [0.5, 1.5]}, {"aspect": [0.0, 1.0]}, {"aspect": [1.2, 0.8]}],
)
def test_settings_that_mean_nothing_are_refused(settings: dict) -> None:
    with pytest.raises(ValidationError):
        Augmentation.model_validate(settings)
