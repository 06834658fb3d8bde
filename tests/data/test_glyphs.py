"""Glyphs are drawn by their stated law: outlines, a camera's style, and who reads which characters how often."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.data.class_counts import class_counts
from fedsim.data.generated import drawn_labels, number_of_samples, preference
from fedsim.data.glyphs.dataset import BASE, Glyphs
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
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError

GOLDEN = Path(__file__).with_name("glyphs.golden.npy")
FEW = {"images_per_device": 20.0}
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


def assert_mean(values, expected: float, fault: float) -> None:
    """The mean is within 4 standard errors, and a relative *fault* would be seen."""
    error = np.std(values) / math.sqrt(len(values))
    assert 4 * error < fault * abs(expected)
    assert abs(np.mean(values) - expected) < 4 * error


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


# --- who reads what ---


@pytest.mark.parametrize("concentration", [0.5, 5.0])
@pytest.mark.parametrize("expected", [BASE, np.arange(1, 63) / 1953], ids=["equal", "unequal"])
def test_preferences_have_the_mean_and_the_variance_of_a_dirichlet_distribution(expected, concentration):
    """Var p_c = q_c (1 - q_c) / (62 a + 1), summed over classes; 2,000 draws, a fault of 5 % is seen."""
    drawn = np.array([preference(expected, concentration, np.random.default_rng([1, k])) for k in range(2000)])
    assert drawn.sum(1) == pytest.approx(1)
    variance = (expected * (1 - expected)).sum() / (62 * concentration + 1)
    assert_mean(((drawn - expected) ** 2).sum(1), variance, fault=0.05)
    errors = np.sqrt(expected * (1 - expected) / (62 * concentration + 1) / 2000)
    assert (np.abs(drawn.mean(0) - expected) < 4 * errors).all()


def test_infinite_concentration_is_no_preference():
    assert preference(BASE, math.inf, np.random.default_rng(1)) is BASE


@pytest.mark.parametrize("factory", [1e-18, 1e-3, 1.0, 1e18])
@pytest.mark.parametrize("camera", [1e-18, 1e-3, 1.0, 1e18])
def test_preferences_stay_frequencies_at_the_ends_of_their_range(factory, camera):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first = preference(BASE, factory, rng)
        second = preference(first, camera, rng)
        assert second.sum() == pytest.approx(1)
        assert (second >= 0).all()
        assert (second[first == 0] == 0).all()
        assert second[drawn_labels(second, 50, rng)].min() > 0


def test_labels_come_as_often_as_the_preference_says():
    """Chi-square with 61 degrees of freedom, 20,000 labels: 100.9 is the 99.9th percentile."""
    expected = np.arange(1, 63) / 1953
    counts = np.bincount(drawn_labels(expected, 20_000, np.random.default_rng(1)), minlength=62)
    assert ((counts - 20_000 * expected) ** 2 / (20_000 * expected)).sum() < 100.9


def test_numbers_of_images_are_lognormal():
    """4,000 devices; the mean, the logarithm's mean and its variance within 4 standard errors, 10 % is seen."""
    numbers = np.array([number_of_samples(165, 0.35, np.random.default_rng([1, k]), least=10) for k in range(4000)])
    assert_mean(numbers, 165, fault=0.03)
    logarithms = np.log(numbers / 165) + 0.35**2 / 2
    assert abs(logarithms.mean()) < 4 * 0.35 / math.sqrt(4000)
    assert_mean(logarithms**2, 0.35**2, fault=0.1)
    assert {number_of_samples(10, 2.0, np.random.default_rng(k), least=10) >= 10 for k in range(100)} == {True}


# --- the data set ---


def raw(streams, count: int = 4, factories=None, unseen: int = 0, seed: int = 1, **options):
    clients = Clients(count, None if factories is None else np.array(factories), unseen)
    made = Glyphs.model_validate(FEW | options).raw(clients, streams(seed))
    return replace(made, x=np.asarray(made.x))


def owned(made, *owners: int) -> tuple[list, list]:
    keep = np.isin(made.owner, owners)
    return made.x[keep].tolist(), made.y[keep].tolist()


def test_a_raw_dataset_says_what_it_holds(streams):
    made = raw(streams, unseen=1)
    assert (made.x.dtype, made.x.shape[1:], made.classes) == (np.uint8, (1, 28, 28), 62)
    assert made.class_names == tuple(CHARACTERS)
    assert (made.y.dtype, made.sample_bytes) == (np.int64, 785.0)
    assert np.unique(made.owner).tolist() == [0, 1, 2, 3, 4]
    decoded = made.encoding.decode(made.x)
    assert 0 == decoded.min() < decoded.max() <= 1


def test_a_cameras_images_do_not_depend_on_how_many_others_there_are(streams):
    few, many = raw(streams, 2), raw(streams, 6, unseen=2)
    assert owned(few, 0, 1) == owned(many, 0, 1)
    assert owned(many, 0) != owned(many, 1)


def test_unseen_cameras_are_the_same_whoever_takes_part(streams):
    few, many = raw(streams, 2, unseen=2), raw(streams, 4, unseen=3)
    assert owned(few, 2, 3) == owned(many, 4, 5)
    assert owned(many, 4)[1] != owned(many, 0)[1]


def test_equal_seeds_make_equal_images_and_others_do_not(streams):
    assert owned(raw(streams), 0, 1, 2, 3) == owned(raw(streams), 0, 1, 2, 3)
    assert owned(raw(streams, seed=2), 0)[1] != owned(raw(streams), 0)[1]


def test_images_are_drawn_only_when_somebody_looks_at_them(streams):
    asked = []

    def listening(purpose):
        asked.append(purpose)
        return streams(1)(purpose)

    made = Glyphs(**FEW).raw(Clients(3, np.array([0, 1, 1]), unseen=2), listening)
    cameras = [*(f"data/glyphs/device/{k}" for k in range(3)), *(f"data/glyphs/unseen/{k}" for k in range(2))]
    assert sorted(asked) == sorted([*cameras, "data/glyphs/factory/0", "data/glyphs/factory/1"])
    asked.clear()
    assert (made.x.shape, made.x.dtype) == ((len(made.y), 1, 28, 28), np.uint8)
    assert asked == []
    assert np.asarray(made.x).shape == made.x.shape
    assert asked == cameras  # whose labels are drawn again, to the same ones, as images come after them


def test_preferences_change_neither_styles_nor_numbers(streams):
    one, other = raw(streams), raw(streams, camera_preference=math.inf)
    assert np.array_equal(one.owner, other.owner)
    assert not np.array_equal(one.y, other.y)


def test_cameras_of_a_factory_prefer_what_it_prints(streams):
    """Cameras that follow their factory: label mixtures of 400 images are closer within than between factories."""
    options = {"images_per_device": 400.0, "images_spread": 0.0, "camera_preference": math.inf}
    made = raw(streams, 4, [0, 0, 1, 1], **options)
    mixtures = np.bincount(62 * made.owner + made.y, minlength=4 * 62).reshape(4, 62) / 400

    def apart(one: int, other: int) -> float:
        return np.abs(mixtures[one] - mixtures[other]).sum() / 2

    assert max(apart(0, 1), apart(2, 3)) < 0.25 < 0.4 < min(apart(0, 2), apart(0, 3), apart(1, 2), apart(1, 3))


def test_one_camera_sees_alike():
    """The nearest neighbour (Euclid) of an image is by the same of 10 devices in a third of cases; chance is 10 %."""
    images, owners = [], np.repeat(np.arange(10), 40)
    for k in range(10):
        rng = np.random.default_rng([4, k])
        style = replace(device_style(rng), typeface=TYPEFACES[8 + k % 2])
        images.append(draw(template(style.typeface), rng.integers(0, 62, 40), style, rng))
    x = np.concatenate(images).reshape(400, -1) / 255
    apart = (x**2).sum(1) - 2 * x @ x.T
    np.fill_diagonal(apart, np.inf)
    assert np.mean(owners[apart.argmin(1)] == owners) > 1 / 3


def test_clients_keep_what_their_own_camera_read(streams):
    data = Glyphs(**FEW, test_fraction=0.1).load(Clients(4), streams(1))
    made = raw(streams)
    for client, ids in enumerate(data.train_ids):
        assert set(made.owner[ids]) == {client}
    assert class_counts(data).shape == (4, 62)
    assert len(data.test_ids) == sum(round(0.1 * number) for number in np.bincount(made.owner))


@pytest.mark.parametrize(
    "options",
    [
        {"images_per_device": 9.0},
        {"images_per_device": math.inf},
        {"images_spread": -0.1},
        {"images_spread": 2.1},
        {"factory_preference": 0.0},
        {"camera_preference": math.nan},
        {"typeface": "cmr10"},
    ],
)
def test_a_key_outside_its_range_is_refused(options):
    with pytest.raises(ValidationError):
        Glyphs.model_validate(options)


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


@pytest.mark.parametrize("unseen", [0, 3])
def test_client_k_is_camera_k_however_many_images_the_unseen_ones_have(unseen, streams):
    """Natural clients of files are those with most samples; cameras are made for their places in the factories."""
    factories = np.array([0, 0, 1, 1, 1])
    clients = Clients(5, factories)
    alone = Glyphs(test_fraction=0.2).load(clients, streams(4))
    data = Glyphs(test_fraction=0.2, unseen_clients=unseen).load(clients, streams(4))
    for client in range(5):
        mine = np.union1d(data.train_ids[client], data.client_test_ids[client])
        same = np.union1d(alone.train_ids[client], alone.client_test_ids[client])
        assert np.array_equal(data.x[mine], alone.x[same])
    assert len(data.unseen_test_ids) == unseen


def test_typefaces_are_kept_in_the_cache_and_read_back_as_they_were(cache_folder):
    made = template.__wrapped__("cmr10")
    assert [entry.name.startswith("glyphs-typeface-") for entry in cache_folder.iterdir()] == [True]
    assert np.array_equal(template.__wrapped__("cmr10"), made)


def test_more_images_than_memory_holds_are_refused(streams):
    """Before any is drawn."""
    with pytest.raises(
        UserError, match=r"1e\+06 images of each of 11 cameras are about 11,000,000, and 10,000,000 are"
    ):
        Glyphs(images_per_device=1e6).load(Clients(11), streams(1))
