"""What a machine is like: the law of all that stays the same in its windows.

Its bearing, its speed, the way from the bearing to the sensor, and the sensor differ from machine to machine. All
constants stand in `Law` and are frozen: a change makes another data set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsim.data.bearings.geometry import BEARINGS, Bearing

__all__ = ["LAW", "SAMPLE_RATE_HZ", "Law", "Machine", "drawn_machine"]

SAMPLE_RATE_HZ = 12_000.0

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Law:
    """Ranges are uniform, spreads are standard deviations of normal draws (of the logarithm where it says so)."""

    # what stays the same at a machine
    shaft_hz: Range = (20.0, 50.0)
    """Without load: 1,200 to 3,000 turns a minute."""
    slip: Range = (0.0, 0.01)
    """By which elements roll less far than the geometry says, relative."""
    modes_hz: tuple[Range, ...] = ((600.0, 1500.0), (1800.0, 3200.0), (3500.0, 5200.0))
    """Resonances of the way from the bearing to the sensor."""
    damping: Range = (0.04, 0.1)
    """Of each resonance, as a share of the critical one."""
    mode_spread: float = 0.5
    """Of a resonance's strength: of the logarithm."""
    mount_hz: Range = (4000.0, 9000.0)
    """Resonance of the sensor on its mount, beyond which it sees little."""
    mount_damping: Range = (0.1, 0.4)
    loaded: Range = (0.6, 1.0)
    """Extent epsilon of the load zone: 0.5 is half of the circle, 1 all of it."""
    strength_spread: float = 0.3
    """Of impacts, from machine to machine: of the logarithm."""
    harmonics_g: tuple[float, ...] = (0.10, 0.05, 0.03)
    """Medians of the vibration at once, twice and three times the shaft's frequency (imbalance, misalignment)."""
    harmonics_spread: float = 0.6
    """Of the logarithm."""
    noise_g: Range = (0.06, 0.12)
    """Root mean square of the machine's own broad noise, which takes the same way to the sensor."""
    sensor_noise_g: Range = (0.02, 0.06)
    """Root mean square of the sensor's own white noise."""
    shaft_modulation: Range = (0.0, 0.3)
    """By how much imbalance moves the load on the outer race, relative."""
    fault_angle_rad: Range = (-0.8, 0.8)
    """Where an outer race is damaged, from the middle of the load zone."""
    knocks_hz: Range = (0.0, 6.0)
    """How often something else in the process knocks."""
    gain_spread: float = 0.1
    """Of the sensor's sensitivity: of the logarithm."""

    # what differs from window to window
    load: Range = (0.5, 1.0)
    """Share of the rated load."""
    droop: float = 0.03
    """By which full load slows the shaft, relative."""
    impact_g: float = 5.0
    """Size of an impact at full load in the middle of the load zone, for a fault of 0.36 mm: the impulse is that of a
    single measurement of this size, before the way to the sensor."""
    impact_spread: float = 0.1
    """From one impact to the next, relative."""
    jitter: float = 0.015
    """Of the time from one impact to the next, relative: slip from element to element."""
    entry: float = 0.4
    """An element strikes when it leaves a fault, and by this part of that when it enters."""
    other_race: float = 0.7
    """A damaged element strikes one race less than the other, by this factor."""
    knock_g: float = 2.5
    """Median of a knock's size."""
    knock_spread: float = 0.5
    """Of the logarithm."""


LAW = Law()
UNIFORM = (
    *("shaft_hz", "slip", "mount_hz", "mount_damping", "loaded", "noise_g", "sensor_noise_g", "knocks_hz"),
    *("shaft_modulation", "fault_angle_rad"),
)
"""What of a machine is a number from a range of the law."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What all windows of one machine have in common; units as in `Law`."""

    bearing: Bearing
    shaft_hz: float
    slip: float
    modes_hz: NDArray[np.float64]
    damping: NDArray[np.float64]
    mode_strength: NDArray[np.float64]
    mount_hz: float
    mount_damping: float
    loaded: float
    strength: float
    harmonics_g: NDArray[np.float64]
    noise_g: float
    sensor_noise_g: float
    knocks_hz: float
    gain: float
    shaft_modulation: float
    fault_angle_rad: float

    def path(self, frequency_hz: NDArray[np.float64]) -> NDArray[np.complex128]:
        """Frequency response from the bearing to the sensor, mean square 1 over *frequency_hz*.

        A sum of resonances, of a response in acceleration to a force, with alternating signs, and behind it the
        sensor on its mount, which is one more.
        """
        s = frequency_hz[:, None] / self.modes_hz
        signs = np.where(np.arange(len(self.modes_hz)) % 2, -1.0, 1.0)
        modes = (signs * self.mode_strength * s**2 / (1 - s**2 + 2j * self.damping * s)).sum(axis=1)
        m = frequency_hz / self.mount_hz
        response = modes / (1 - m**2 + 2j * self.mount_damping * m)
        whole: NDArray[np.complex128] = response / np.sqrt(np.mean(np.abs(response) ** 2))
        return whole


def drawn_machine(rng: np.random.Generator, law: Law = LAW) -> Machine:
    """One machine: its bearing is one of `BEARINGS`, each as likely as the others.

    >>> drawn_machine(np.random.default_rng(1)).bearing.name
    'ZA-2115'
    """
    bearing = BEARINGS[int(rng.integers(len(BEARINGS)))]
    modes, harmonics = len(law.modes_hz), len(law.harmonics_g)
    strength, gain, *normal = rng.standard_normal(2 + modes + harmonics).tolist()
    return Machine(
        bearing=bearing,
        strength=math.exp(law.strength_spread * strength),
        gain=math.exp(law.gain_spread * gain),
        mode_strength=np.exp(law.mode_spread * np.array(normal[:modes])),
        harmonics_g=np.array(law.harmonics_g) * np.exp(law.harmonics_spread * np.array(normal[modes:])),
        modes_hz=_drawn(rng, law.modes_hz),
        damping=_drawn(rng, [law.damping] * modes),
        **dict(zip(UNIFORM, _drawn(rng, [getattr(law, name) for name in UNIFORM]).tolist(), strict=True)),
    )


def _drawn(rng: np.random.Generator, ranges: Sequence[Range]) -> NDArray[np.float64]:
    """A number within each of *ranges*."""
    low, high = np.array(ranges).T
    drawn: NDArray[np.float64] = low + (high - low) * rng.random(len(ranges))
    return drawn
