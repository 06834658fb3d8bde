"""Images of glyphs are drawn by their stated law: outlines, one image, and the style of a device."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from against_theory import assert_mean

from fedsim.data.glyphs.style import LAW, Law, Style, device_style, draw
from fedsim.data.glyphs.typefaces import (
    CHARACTERS,
    FRAME,
    GRID,
    TYPEFACES,
    font_file,
    signed_distance,
    strokes,
    template,
)
from fedsim.errors import UserError

GOLDEN = Path(__file__).with_name("glyphs.golden.npy")
STILL = Law(
    size_spread=0.0,
    slant_spread_of_image=0.0,
    turn_spread_of_image=0.0,
    offset_spread_px=0.0,
    boldness_spread=0.0,
    contrast_spread=0.0,
)
PLAIN = Style(
    typeface="DejaVuSans",
    size_px=9.0,
    aspect=1.0,
    slant=0.0,
    turn=0.0,
    right_px=0.0,
    down_px=0.0,
    boldness=0.0,
    blur_px=1.0,
    contrast=1.0,
    noise=0.0,
    dirt=0.0,
    glare=0.0,
)
BAR_HALF_WIDTH = 0.1182398  # of DejaVuSans's l, in halves of its height: 1556 units high and 184 wide
GROUND = np.full((62, GRID, GRID), 9, np.float32)  # a template without ink
SQUARE = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], float)


def image(letter: str, law: Law = STILL, **style) -> np.ndarray:
    """(28, 28) from 0 to 1: *letter* of DejaVuSans in a plain style but for what is named."""
    labels = np.array([CHARACTERS.index(letter)])
    return draw(template("DejaVuSans"), labels, replace(PLAIN, **style), np.random.default_rng(1), law)[0] / 255


def closed(corners: np.ndarray) -> np.ndarray:
    return np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)


def centroid(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(images,) how far right of and below the middle the ink is, in pixels."""
    at = np.arange(28) - 13.5
    ink = images.sum((1, 2))
    return (images.sum(1) * at).sum(1) / ink, (images.sum(2) * at).sum(1) / ink


# --- typefaces ---


def test_every_typeface_is_there_and_holds_all_62_characters():
    from matplotlib.ft2font import FT2Font

    assert len(set(TYPEFACES)) == 20
    for name in TYPEFACES:
        known = FT2Font(font_file(name)).get_charmap()
        assert all(ord(letter) in known for letter in CHARACTERS), name


def test_labels_are_those_of_femnist():
    """LEAF's order: digits, capital letters, small letters."""
    assert [CHARACTERS.index(letter) for letter in "09AZaz"] == [0, 9, 10, 35, 36, 61]


def test_a_missing_font_is_named(monkeypatch):
    with pytest.raises(UserError, match=r"NoSuchFont\.ttf cannot be read .*; install matplotlib anew"):
        strokes("NoSuchFont", "A")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match="data set 'glyphs' draws with matplotlib's fonts; install matplotlib"):
        strokes("DejaVuSans", "A")


def test_importing_the_data_set_leaves_matplotlib_and_torch_alone():
    code = "import sys, fedsim.data.glyphs.dataset; print({'matplotlib', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_the_distance_to_a_bar_is_that_of_a_rectangle():
    """Outside the length of what sticks out beyond the sides, inside minus the way to the nearest one."""
    at = np.linspace(-FRAME, FRAME, GRID)
    beyond_x, beyond_y = np.abs(at)[None, :] - BAR_HALF_WIDTH, np.abs(at)[:, None] - 1
    outside = np.hypot(np.maximum(beyond_x, 0), np.maximum(beyond_y, 0))
    expected = np.where(np.maximum(beyond_x, beyond_y) > 0, outside, np.maximum(beyond_x, beyond_y))
    assert template("DejaVuSans")[CHARACTERS.index("l")] == pytest.approx(expected, abs=2e-4)


def test_a_contour_against_the_other_makes_a_hole_and_one_with_it_does_not():
    ring = signed_distance(np.concatenate([closed(SQUARE), closed(SQUARE[::-1] / 2)]))
    full = signed_distance(np.concatenate([closed(SQUARE), closed(SQUARE / 2)]))
    middle, rim = GRID // 2, round((0.75 + FRAME) / (2 * FRAME) * (GRID - 1))
    assert ring[middle, middle] == pytest.approx(0.5, abs=0.03)
    assert full[middle, middle] == pytest.approx(-0.5, abs=0.03)
    assert ring[middle, rim] == full[middle, rim] == pytest.approx(-0.25, abs=0.03)


@pytest.mark.parametrize("typeface", ["DejaVuSerif", "cmr10"])
def test_characters_fill_the_frame_and_differ(typeface):
    """A distance changes by no more than the way (1-Lipschitz); the box is filled; no two letters are the same."""
    made = template(typeface)
    step = 2 * FRAME / (GRID - 1)
    assert max(np.abs(np.diff(made, axis=axis)).max() for axis in (1, 2)) < 1.001 * step
    for letter in CHARACTERS:
        ends = strokes(typeface, letter).max((0, 1)) - strokes(typeface, letter).min((0, 1))
        assert ends.max() == pytest.approx(2)
    apart = np.abs(made[:, None] - made[None]).max((2, 3))
    assert apart[~np.eye(62, dtype=bool)].min() > 0.01


@pytest.mark.long
def test_characters_differ_in_every_typeface():
    """The closest are I and l of plain sans serifs: two bars of slightly different width, as on real labels."""
    for typeface in TYPEFACES:
        made = template(typeface)
        apart = np.abs(made[:, None] - made[None]).max((2, 3))
        assert apart[~np.eye(62, dtype=bool)].min() > 0.01, typeface


# --- one image ---


@pytest.mark.parametrize(("boldness", "blur_px"), [(0.0, 1.0), (0.15, 1.0), (0.15, 4.0)])
@pytest.mark.parametrize("aspect", [1.0, 0.7])
def test_the_ink_of_a_bar_is_its_area(aspect, boldness, blur_px):
    """Boldness moves every edge outwards by r, which makes round corners: A(r) = w h + 2 (w + h) r + pi r^2.

    Blur is the mean of A over r +- blur / 2, which adds pi blur^2 / 12 where the bar is wider than the blur; a camera
    from the side sees all of this narrower. Mean over places within a pixel; within 1.5 % on a grid of 0.43 pixels.
    """
    width, height, out = 2 * 9.0 * BAR_HALF_WIDTH, 2 * 9.0, 9.0 * boldness
    area_px = width * height + 2 * (width + height) * out + math.pi * (out**2 + blur_px**2 / 12)
    places = [image("l", aspect=aspect, boldness=boldness, blur_px=blur_px, right_px=k / 8) for k in range(8)]
    assert np.sum(places) / 8 == pytest.approx(aspect * area_px, rel=0.015)


def test_the_edge_is_a_ramp_as_wide_as_the_blur():
    """The middle row of a wide bar, on both sides."""
    for blur_px, pixels in ((1.0, 2), (4.0, 8)):
        row = image("l", boldness=0.3, blur_px=blur_px)[14]
        assert pixels - 2 <= np.count_nonzero((row > 0.005) & (row < 0.995)) <= pixels


def test_the_middle_moves_by_whole_pixels():
    assert np.array_equal(image("R", right_px=2.0), np.roll(image("R"), 2, axis=1))
    assert np.array_equal(image("R", down_px=-1.0), np.roll(image("R"), -1, axis=0))


def test_a_turn_is_clockwise_and_a_slant_leans_to_the_right():
    """The tangent of half of 90 degrees is 1. The character is slanted first, and then turned."""
    for slant in (0.0, 0.3):
        turned = np.rot90(image("R", slant=slant), -1)
        assert image("R", turn=1.0, slant=slant) == pytest.approx(turned, abs=1.01 / 255)
    leaning = image("l", slant=0.3)
    upper, lower = centroid(np.stack([leaning[:14], leaning[14:]]).repeat(2, axis=1))[0]
    assert upper - lower == pytest.approx(0.3 * 9.0, rel=0.02)


def test_contrast_scales_every_grey_level():
    assert image("R", contrast=0.5) == pytest.approx(image("R") / 2, abs=1.01 / 255)


def test_images_scatter_around_their_device():
    """2,000 images of a bar: means and standard deviations of its place within 4 standard errors, 10 % is seen."""
    law, labels = replace(STILL, offset_spread_px=0.7), np.full(2000, CHARACTERS.index("l"))
    style = replace(PLAIN, right_px=1.0, down_px=-1.0)
    right, down = centroid(draw(template("DejaVuSans"), labels, style, np.random.default_rng(1), law) / 255)
    for place, expected in ((right, 1.0), (down, -1.0)):
        assert_mean(place, expected, fault=0.1)
        assert_mean((place - expected) ** 2, 0.7**2, fault=0.15)
    assert abs(np.corrcoef(right, down)[0, 1]) < 4 / math.sqrt(2000)


def test_noise_on_the_ground_is_a_normal_cut_at_black():
    """E max(0, e) = sigma / sqrt(2 pi) for e ~ Normal(0, sigma); 160,000 pixels, a fault of 1.5 % is seen."""
    images = draw(GROUND, np.zeros(204, np.int64), replace(PLAIN, noise=0.1), np.random.default_rng(1), STILL)
    assert_mean(images.ravel() / 255, 0.1 / math.sqrt(2 * math.pi), fault=0.015)


@pytest.mark.parametrize(("kind", "ground"), [("dirt", 9), ("glare", -9)])
def test_spots_are_as_frequent_and_as_large_as_their_law_says(kind, ground):
    """Dirt is ink on the ground, glare is ground in the ink; 3,000 images, a fault of 10 % is seen.

    A spot of radius r has the ink of a sharp one, pi r^2, if the blur is no wider than r; for uniform r from 1 to 3.5
    the mean of r^2 is 5.75 (a third of a^2 + a b + b^2).
    """
    plain = np.full_like(GROUND, ground)
    style = replace(PLAIN, **{kind: 0.3})
    images = draw(plain, np.zeros(3000, np.int64), style, np.random.default_rng(1), STILL) / 255
    spots = np.abs(images - (ground < 0)).sum((1, 2))
    assert_mean(spots > 0, 0.3, fault=0.12)
    assert_mean(spots[spots > 0], math.pi * 5.75, fault=0.1)


def test_a_spot_is_as_blurred_as_the_ink():
    """At blur 4 the middle of a spot of radius r reaches 1/2 + r / 8, and the largest r is 3.5."""
    style = replace(PLAIN, dirt=0.999, blur_px=4.0)
    images = draw(GROUND, np.zeros(2000, np.int64), style, np.random.default_rng(1), STILL) / 255
    assert images.max() == pytest.approx(1 / 2 + 3.5 / 8, abs=0.01)


def test_images_are_bytes_and_batches_leave_no_seam():
    """More images than are drawn at a time; every one of them is a picture of its label."""
    labels = np.arange(300) % 62
    images = draw(template("DejaVuSans"), labels, PLAIN, np.random.default_rng(1), STILL)
    assert (images.shape, images.dtype) == ((300, 28, 28), np.uint8)
    assert (images.min(), images.max()) == (0, 255)
    assert np.array_equal(images[:238], images[62:])
    assert draw(template("DejaVuSans"), labels[:0], PLAIN, np.random.default_rng(1)).shape == (0, 28, 28)


# --- a device's style ---


def test_styles_follow_their_law():
    """4,000 devices; means and variances within 4 standard errors, 10 % of a range or spread is seen."""
    styles = [device_style(np.random.default_rng([1, k])) for k in range(4000)]
    ranges = {"right_px": LAW.offset_px, "down_px": LAW.offset_px}
    ranges |= {name: getattr(LAW, name) for name in ("size_px", "aspect", "boldness", "blur_px", "contrast")}
    ranges |= {name: getattr(LAW, name) for name in ("noise", "dirt", "glare")}
    spreads = {"slant": LAW.slant_spread, "turn": LAW.turn_spread}
    assert {"typeface", *ranges, *spreads} == {field.name for field in fields(Style)}
    for name, (low, high) in ranges.items():
        place = (np.array([getattr(style, name) for style in styles]) - low) / (high - low)
        assert 0 <= place.min() < 0.01 < 0.99 < place.max() <= 1
        assert_mean(place, 1 / 2, fault=0.1)
        assert_mean((place - 1 / 2) ** 2, 1 / 12, fault=0.1)
    for name, spread in spreads.items():
        drawn = np.array([getattr(style, name) for style in styles]) / spread
        assert_mean(drawn**2, 1, fault=0.1)
        assert abs(drawn.mean()) < 4 / math.sqrt(4000)


def test_typefaces_are_equally_likely():
    """Chi-square with 19 degrees of freedom, 4,000 devices: 43.8 is the 99.9th percentile."""
    names = [device_style(np.random.default_rng([2, k])).typeface for k in range(4000)]
    counts = np.array([names.count(name) for name in TYPEFACES])
    assert counts.sum() == 4000
    assert ((counts - 200) ** 2 / 200).sum() < 43.8


def test_ink_stays_clear_of_the_border():
    """Of 1,000 images of 100 devices, without noise and dirt: what reaches the outermost pixels is rare and faint."""
    faces = {}
    rings = []
    for k in range(100):
        rng = np.random.default_rng([3, k])
        style = replace(device_style(rng), typeface=TYPEFACES[8 + k % 2], noise=0.0, dirt=0.0)
        face = faces.setdefault(style.typeface, template(style.typeface))
        images = draw(face, rng.integers(0, 62, 10), style, rng) / 255
        rings += [np.concatenate([x[0], x[-1], x[:, 0], x[:, -1]]) for x in images]
    assert np.mean(rings) < 0.002
    assert np.mean(np.max(rings, axis=1) > 0.25) < 0.03


# --- the frozen law ---


def test_the_law_has_not_moved():
    """Eight images of four devices, kept as they were when the difficulty was set; one grey level may differ."""
    drawn = []
    for k, typeface in enumerate(("DejaVuSans", "DejaVuSerif", "cmr10", "DejaVuSerif-Bold")):
        rng = np.random.Generator(np.random.Philox(key=k))
        style = replace(device_style(rng), typeface=typeface)
        drawn.append(draw(template(typeface), np.array([28, 8 + 10 * k]), style, rng))
    kept = np.load(GOLDEN).astype(np.int64)
    assert np.abs(np.concatenate(drawn).astype(np.int64) - kept).max() <= 1


def test_typefaces_are_kept_in_the_cache_and_read_back_as_they_were(cache_folder):
    made = template.__wrapped__("cmr10")
    assert [entry.name.startswith("glyphs-typeface-") for entry in cache_folder.iterdir()] == [True]
    assert np.array_equal(template.__wrapped__("cmr10"), made)
