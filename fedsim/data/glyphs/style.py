"""How a camera sees its characters: the law of a device's style, and of one image given that style.

A style holds what stays the same at one camera (what is printed there, how it is mounted and lit, its lens and its
sensor); an image adds its own small changes, dirt and glare, and the sensor's noise. All constants stand in `Law`
and are frozen: a change makes another data set. Left out: curved surfaces, colour, uneven light, and compression.

Pixels are computed by elementwise arithmetic in float32, which IEEE 754 fixes, and by no transcendental function.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fedsim.data.glyphs.typefaces import FRAME, GRID, TYPEFACES

__all__ = ["LAW", "PIXELS", "Law", "Style", "device_style", "draw"]

PIXELS = 28
BATCH = 128  # images drawn at a time, so that their pixels stay in the processor's cache

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Law:
    """Ranges are uniform, spreads are standard deviations of normal draws; lengths in pixels unless said otherwise."""

    size_px: Range = (8.4, 10.4)
    """Device: half of the longer side of the character."""
    size_spread: float = 0.04
    """Image: relative."""
    aspect: Range = (0.7, 1.0)
    """Device: width by height, in parts of the typeface's (a camera that looks from the side sees narrower ones)."""
    slant_spread: float = 0.12
    """Device: shift to the right by height."""
    slant_spread_of_image: float = 0.03
    turn_spread: float = 0.04
    """Device: tangent of half of the angle of rotation; 0.04 is 4.6 degrees."""
    turn_spread_of_image: float = 0.03
    offset_px: Range = (-1.2, 1.2)
    """Device: of the centre, to the right and downwards, each for itself."""
    offset_spread_px: float = 0.6
    """Image."""
    boldness: Range = (-0.03, 0.08)
    """Device: the edge of the ink moves outwards, in halves of the character's longer side."""
    boldness_spread: float = 0.02
    """Image."""
    blur_px: Range = (1.0, 3.5)
    """Device: width of the ramp from ink to ground."""
    contrast: Range = (0.4, 1.0)
    """Device: grey level of ink, 1 is full."""
    contrast_spread: float = 0.05
    """Image."""
    noise: Range = (0.04, 0.2)
    """Device: standard deviation of a pixel's grey level."""
    dirt: Range = (0.0, 0.4)
    """Device: probability of a round spot of ink on an image."""
    glare: Range = (0.0, 0.4)
    """Device: probability of a round spot without ink on an image."""
    spot_px: Range = (1.0, 3.5)
    """Image: radius of a spot."""
    spot_place_px: Range = (-9.0, 9.0)
    """Image: centre of a spot, to the right of and below the image's centre, each for itself."""


LAW = Law()


@dataclass(frozen=True, slots=True)
class Style:
    """What all images of one device have in common; units as in `Law`."""

    typeface: str
    size_px: float
    aspect: float
    slant: float
    turn: float
    right_px: float
    down_px: float
    boldness: float
    blur_px: float
    contrast: float
    noise: float
    dirt: float
    glare: float


def device_style(rng: np.random.Generator, law: Law = LAW) -> Style:
    """One device's style: the typeface is one of `TYPEFACES`, each as likely as the others.

    >>> device_style(np.random.default_rng(1)).typeface
    'DejaVuSerif-Bold'
    """
    typeface = TYPEFACES[int(rng.integers(len(TYPEFACES)))]
    size_px, aspect = _uniform(rng, law.size_px, law.aspect)
    slant, turn = rng.standard_normal(2).tolist()
    right_px, down_px, boldness, blur_px, contrast, noise, dirt, glare = _uniform(
        rng, law.offset_px, law.offset_px, law.boldness, law.blur_px, law.contrast, law.noise, law.dirt, law.glare
    )
    return Style(
        typeface=typeface,
        size_px=size_px,
        aspect=aspect,
        slant=law.slant_spread * slant,
        turn=law.turn_spread * turn,
        right_px=right_px,
        down_px=down_px,
        boldness=boldness,
        blur_px=blur_px,
        contrast=contrast,
        noise=noise,
        dirt=dirt,
        glare=glare,
    )


def _uniform(rng: np.random.Generator, *ranges: Range) -> list[float]:
    """A number within each of *ranges*, all drawn at once: there may be a hundred thousand devices."""
    drawn = rng.random(len(ranges)).tolist()
    return [low + (high - low) * part for (low, high), part in zip(ranges, drawn, strict=True)]


def draw(
    template: NDArray[np.float32],
    labels: NDArray[np.int64],
    style: Style,
    rng: np.random.Generator,
    law: Law = LAW,
) -> NDArray[np.uint8]:
    """(images, 28, 28) grey levels, 0 ground and 255 ink: one image of each of *labels*.

    *template* is the (62, GRID, GRID) of the style's typeface.
    """
    images = np.empty((len(labels), PIXELS, PIXELS), np.uint8)
    for first, last in pairwise([*range(0, len(labels), BATCH), len(labels)]):
        images[first:last] = _batch(template, labels[first:last], style, rng, law)
    return images


def _batch(
    template: NDArray[np.float32],
    labels: NDArray[np.int64],
    style: Style,
    rng: np.random.Generator,
    law: Law,
) -> NDArray[np.uint8]:
    n = len(labels)
    normal = rng.standard_normal((7, n))
    size = style.size_px * (1 + law.size_spread * normal[0])
    turn = style.turn + law.turn_spread_of_image * normal[1]
    slant = style.slant + law.slant_spread_of_image * normal[2]
    right = style.right_px + law.offset_spread_px * normal[3]
    down = style.down_px + law.offset_spread_px * normal[4]
    boldness = style.boldness + law.boldness_spread * normal[5]
    contrast = np.minimum(style.contrast + law.contrast_spread * normal[6], 1)

    column, row = _frame_coordinates(size=size, aspect=style.aspect, slant=slant, turn=turn, right=right, down=down)
    grey = _distance(template, labels, column, row)  # halves of the longer side
    grey -= _each(boldness)
    grey *= _each(-size / style.blur_px)
    grey += np.float32(0.5)
    np.clip(grey, 0, 1, out=grey)
    np.maximum(grey, _spots(rng, n, style.dirt, style.blur_px, law), out=grey)
    grey *= 1 - _spots(rng, n, style.glare, style.blur_px, law)
    grey *= _each(contrast)
    grey += np.float32(style.noise) * rng.standard_normal(grey.shape, np.float32)
    np.clip(grey, 0, 1, out=grey)
    grey *= np.float32(255)
    grey += np.float32(0.5)
    levels: NDArray[np.uint8] = grey.astype(np.uint8)
    return levels


def _frame_coordinates(
    *,
    size: NDArray[np.float64],
    aspect: float,
    slant: NDArray[np.float64],
    turn: NDArray[np.float64],
    right: NDArray[np.float64],
    down: NDArray[np.float64],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(images, 28, 28) column and row of the template's grid that each pixel's centre shows.

    A point (u, v) of the frame, v downwards, is first widened and slanted, (aspect u - slant v, v), then turned by the
    angle whose half has tangent *turn*, then scaled by *size* and moved; here is the inverse.
    """
    cosine, sine = (1 - turn**2) / (1 + turn**2), 2 * turn / (1 + turn**2)
    at = np.arange(PIXELS) - (PIXELS - 1) / 2
    x, y = at - right[:, None], at - down[:, None]  # (images, 28), pixels
    step = (GRID - 1) / (2 * FRAME) / size  # grid steps for each pixel
    v_x, v_y = -sine * step, cosine * step
    u_x, u_y = (cosine * step + slant * v_x) / aspect, (sine * step + slant * v_y) / aspect
    middle = (GRID - 1) / 2
    column = _plane(u_x[:, None] * x + middle, u_y[:, None] * y)
    row = _plane(v_x[:, None] * x + middle, v_y[:, None] * y)
    return column, row


def _plane(along_row: NDArray[np.float64], along_column: NDArray[np.float64]) -> NDArray[np.float32]:
    """(images, 28, 28) sums, moved to the nearest place inside the grid."""
    plane = along_column.astype(np.float32)[:, :, None] + along_row.astype(np.float32)[:, None, :]
    limit = np.float32(GRID - 1.001)
    np.clip(plane, np.float32(0), limit, out=plane)
    return plane


def _distance(
    template: NDArray[np.float32], labels: NDArray[np.int64], column: NDArray[np.float32], row: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(images, 28, 28) *template* of each image's label, by bilinear interpolation."""
    left, top = column.astype(np.int32), row.astype(np.int32)
    column -= left.astype(np.float32)
    row -= top.astype(np.float32)
    corner = top * np.int32(GRID)
    corner += left
    corner += (labels.astype(np.int32) * np.int32(GRID * GRID))[:, None, None]
    flat = template.reshape(-1)
    upper, lower = (flat[offset:].take(corner) for offset in (0, GRID))
    upper += column * (flat[1:].take(corner) - upper)
    lower += column * (flat[GRID + 1 :].take(corner) - lower)
    lower -= upper
    lower *= row
    lower += upper
    return lower


def _spots(rng: np.random.Generator, n: int, probability: float, blur_px: float, law: Law) -> NDArray[np.float32]:
    """(images, 28, 28) between 0 and 1: a round spot, blurred like the ink, on some of the images.

    Its profile is 1/2 + (r^2 - d^2) / (2 r blur) at distance d from its centre, cut to [0, 1]: the ramp's slope at the
    edge is that of the ink.
    """
    present = rng.random(n) < probability
    radius = rng.uniform(*law.spot_px, n)
    at = np.arange(PIXELS) - (PIXELS - 1) / 2
    x, y = (at - rng.uniform(*law.spot_place_px, n)[:, None] for _ in range(2))
    steep = 1 / (2 * radius * blur_px)
    high = np.where(present, 0.5 + radius**2 * steep, -1.0)
    spot = (high[:, None] - steep[:, None] * x**2).astype(np.float32)[:, None, :] - (steep[:, None] * y**2).astype(
        np.float32
    )[:, :, None]
    np.clip(spot, 0, 1, out=spot)
    return spot


def _each(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """(images, 1, 1)"""
    return values.astype(np.float32)[:, None, None]
