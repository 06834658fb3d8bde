"""What a sensor measures on a machine: the law of one window of vibration, given the machine and the condition.

A damaged place is struck again and again (`fedsim.data.bearings.geometry` says how often); each impact excites the
resonances of the way to the sensor. Impacts come with slip, and are as strong as the load where they happen: the load
zone of the outer race stands still, the inner race and the cage turn through it. On top come the shaft's harmonics,
broad noise of the machine, knocks that have nothing to do with bearings, and the sensor's own noise. The model is that
of P. D. McFadden and J. D. Smith (*Model for the vibration produced by a single point defect in a rolling element
bearing*, Journal of Sound and Vibration 96, 1984), with the random slip of Randall and Antoni (2011) and the two
impacts of a spall (N. Sawalhi, R. B. Randall, *Vibration response of spalled rolling element bearings*, Mechanical
Systems and Signal Processing 25, 2011).

Left out: changes of speed within a window, several faults at once, gears, and electrical noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.data.bearings.machine import LAW, SAMPLE_RATE_HZ, Law, Machine

__all__ = ["CONDITIONS", "FAULTS", "SIZES_MM", "Condition", "load_zone", "vibration"]

FAULTS = ("normal", "outer race", "inner race", "ball")
SIZES_MM = (0.18, 0.36, 0.53)
"""Diameters of damaged places: 7, 14 and 21 thousandths of an inch, as they were made at Case Western Reserve."""
WARM_UP = 512
"""Measurements before a window, in which what rings at its beginning was struck."""
BLOCK = 64
"""Windows at a time, and the length of what a harmonic is made of: few enough for the processor's cache."""


class Condition(NamedTuple):
    """What is wrong with a bearing."""

    fault: str
    """One of `FAULTS`."""
    size_mm: float
    """Diameter of the damaged place; 0 where there is none."""


CONDITIONS = (Condition("normal", 0.0), *(Condition(fault, size) for fault in FAULTS[1:] for size in SIZES_MM))
"""All ten."""


def load_zone(angle_rad: NDArray[np.float64], extent: float) -> NDArray[np.float64]:
    """Load of a ball at an angle from the middle of the load zone, as a share of that in the middle.

    Stribeck's law with exponent 3/2 for balls: (1 - (1 - cos angle) / (2 extent))^(3/2), and 0 outside the zone, whose
    *extent* is 0.5 where half of the circle is loaded.

    >>> load_zone(np.array([0.0, np.pi / 3, np.pi / 2, np.pi]), 0.5).round(3).tolist()
    [1.0, 0.354, 0.0, 0.0]
    """
    share = 1 - (1 - np.cos(angle_rad)) / (2 * extent)
    loads: NDArray[np.float64] = np.maximum(share, 0.0) ** 1.5
    return loads


class _Impacts(NamedTuple):
    """Of one kind; (windows, impacts) each."""

    at_s: NDArray[np.float64]
    """Since the warm-up began; what is later than the window is not there."""
    size_g: NDArray[np.float64]


def vibration(
    machine: Machine,
    conditions: NDArray[np.int64],
    window: int,
    rng: np.random.Generator,
    law: Law = LAW,
) -> NDArray[np.float64]:
    """(windows, *window*) acceleration in g at 12 kHz, one window of each of *conditions* (positions in `CONDITIONS`).

    A draw for a window depends on the windows before it; equal generators give equal windows.
    """
    x = np.empty((len(conditions), window))
    length = window + WARM_UP
    path = machine.path(np.arange(length // 2 + 1, dtype=np.float64) * (SAMPLE_RATE_HZ / length))
    for first in range(0, len(conditions), BLOCK):
        some = conditions[first : first + BLOCK]
        load = _uniform(rng, law.load, len(some))
        shaft_hz = machine.shaft_hz * (1 - law.droop * load)
        struck = np.zeros(len(some) * length)
        for condition in np.unique(some).tolist():
            here = np.flatnonzero(some == condition)
            for impacts in _of_condition(machine, CONDITIONS[condition], shaft_hz[here], load[here], length, rng, law):
                _add(struck, here, impacts, length)
        _add(struck, np.arange(len(some)), _knocks(machine, len(some), length, rng, law), length)
        spectrum = np.fft.rfft(struck.reshape(len(some), length)) * path
        spectrum += _noise_spectrum(machine, path, len(some), length, rng)
        block = np.fft.irfft(spectrum, length)[:, WARM_UP:]
        for order, size_g in enumerate(machine.harmonics_g.tolist(), start=1):
            block += size_g * _tone(order * shaft_hz, rng.random(len(some)), window)
        x[first : first + BLOCK] = machine.gain * block
    return x


def _of_condition(
    machine: Machine,
    condition: Condition,
    shaft_hz: NDArray[np.float64],
    load: NDArray[np.float64],
    length: int,
    rng: np.random.Generator,
    law: Law,
) -> list[_Impacts]:
    """Impacts at the damaged place: when an element leaves it, and a little earlier, when it enters."""
    fault, size_mm = condition
    bearing, rolled_hz = machine.bearing, shaft_hz * (1 - machine.slip)
    if fault == "normal":
        return []
    cage_hz, spin_hz = bearing.cage * rolled_hz, bearing.spin * rolled_hz
    turn = rng.random((len(shaft_hz), 1))  # where whatever turns is at the beginning, in turns
    match fault:
        case "outer race":
            at_s = _moments(bearing.outer * rolled_hz, length, rng, law)
            shaken = 1 + machine.shaft_modulation * np.cos(2 * np.pi * (shaft_hz[:, None] * at_s + turn))
            strength = shaken * load_zone(np.array(machine.fault_angle_rad), machine.loaded)
            crossing_mm_s = math.pi * bearing.pitch_mm * cage_hz
        case "inner race":
            at_s = _moments(bearing.inner * rolled_hz, length, rng, law)
            strength = load_zone(2 * np.pi * (shaft_hz[:, None] * at_s + turn), machine.loaded)
            crossing_mm_s = math.pi * bearing.pitch_mm * (shaft_hz - cage_hz)
        case _:
            at_s = _moments(2 * spin_hz, length, rng, law)
            race = np.where(np.arange(at_s.shape[1]) % 2, law.other_race, 1.0)
            strength = race * load_zone(2 * np.pi * (cage_hz[:, None] * at_s + turn), machine.loaded)
            crossing_mm_s = math.pi * bearing.element_mm * spin_hz
    size_g = law.impact_g * machine.strength * (size_mm / SIZES_MM[1]) * load[:, None] * strength
    size_g *= 1 + law.impact_spread * rng.standard_normal(at_s.shape)
    return [_Impacts(at_s, law.entry * size_g), _Impacts(at_s + (size_mm / crossing_mm_s)[:, None], size_g)]


def _moments(frequency_hz: NDArray[np.float64], length: int, rng: np.random.Generator, law: Law) -> NDArray[np.float64]:
    """(windows, impacts) seconds of impacts at a mean frequency, from before the warm-up to behind the window."""
    most = math.ceil(1.1 * length / SAMPLE_RATE_HZ * frequency_hz.max(initial=0)) + 2
    steps = 1 + law.jitter * rng.standard_normal((len(frequency_hz), most))
    return (steps.cumsum(axis=1) - 1 - rng.random((len(frequency_hz), 1))) / frequency_hz[:, None]


def _knocks(machine: Machine, windows: int, length: int, rng: np.random.Generator, law: Law) -> _Impacts:
    """Of the process around the machine: a Poisson process."""
    duration_s = length / SAMPLE_RATE_HZ
    number = rng.poisson(machine.knocks_hz * duration_s, windows)
    most = int(number.max(initial=0))
    at_s = duration_s * rng.random((windows, most))
    at_s[np.arange(most) >= number[:, None]] = np.inf
    return _Impacts(at_s, law.knock_g * np.exp(law.knock_spread * rng.standard_normal((windows, most))))


def _add(struck: NDArray[np.float64], windows: NDArray[np.int64], impacts: _Impacts, length: int) -> None:
    """Spread each impact over the two measurements next to it; *struck* is (all windows * length,)."""
    place = impacts.at_s * SAMPLE_RATE_HZ
    there = (place >= 0) & (place < length - 1)
    row, _ = np.nonzero(there)
    low = place[there].astype(np.int64)
    share = place[there] - low
    at, size_g = windows[row] * length + low, impacts.size_g[there]
    np.add.at(struck, at, size_g * (1 - share))
    np.add.at(struck, at + 1, size_g * share)


def _noise_spectrum(
    machine: Machine, path: NDArray[np.complex128], windows: int, length: int, rng: np.random.Generator
) -> NDArray[np.complex128]:
    """Spectra of normal noise: the machine's behind its way to the sensor, and the sensor's own, which is white."""
    power = machine.noise_g**2 * np.abs(path) ** 2 + machine.sensor_noise_g**2
    parts = rng.standard_normal((windows, 2 * len(path)))
    whole: NDArray[np.complex128] = parts.view(np.complex128) * np.sqrt(power * length / 2)
    return whole


def _tone(frequency_hz: NDArray[np.float64], phase: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """(windows, *window*) cosines, by the angle-sum identity from blocks, as so many cosines take longer."""
    turns = 2 * np.pi * frequency_hz[:, None] / SAMPLE_RATE_HZ
    blocks = turns * BLOCK * np.arange(-(-window // BLOCK)) + 2 * np.pi * phase[:, None]
    within = turns * np.arange(BLOCK)
    whole = np.cos(blocks)[:, :, None] * np.cos(within)[:, None] - np.sin(blocks)[:, :, None] * np.sin(within)[:, None]
    tones: NDArray[np.float64] = whole.reshape(len(turns), -1)[:, :window]
    return tones


def _uniform(rng: np.random.Generator, bounds: tuple[float, float], number: int) -> NDArray[np.float64]:
    low, high = bounds
    return low + (high - low) * rng.random(number)
