"""Draws docs/images/bearings_*.png: what a sensor of the data set ``bearings`` measures, and what its envelope shows.

``python docs/pictures/bearings.py``
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedsim.data.bearings.machine import LAW, SAMPLE_RATE_HZ, Machine, drawn_machine
from fedsim.data.bearings.vibration import CONDITIONS, FAULTS, SIZES_MM, vibration
from fedsim.viz.save import save_figure
from fedsim.viz.style import RC

IMAGES = Path(__file__).resolve().parents[1] / "images"
WINDOW = 2048
WINDOWS = 200
BAND_HZ = (1500.0, 5800.0)
MACHINE = 7


def windows(machine: Machine, fault: str, size_mm: float) -> NDArray[np.float64]:
    condition = CONDITIONS.index((fault, 0.0 if fault == "normal" else size_mm))
    return vibration(machine, np.full(WINDOWS, condition), WINDOW, np.random.default_rng(3))


def envelope(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the band in which the way to the sensor resonates."""
    frequency_hz = np.fft.fftfreq(x.shape[1], 1 / SAMPLE_RATE_HZ)
    inside = (frequency_hz >= BAND_HZ[0]) & (frequency_hz <= BAND_HZ[1])
    return np.abs(np.fft.ifft(np.where(inside, 2 * np.fft.fft(x), 0)))


def amplitude(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root of the mean power of windows, with a Hann window."""
    hann = np.hanning(x.shape[1])
    centred = (x - x.mean(axis=1, keepdims=True)) * hann
    power = np.abs(np.fft.rfft(centred)) ** 2
    return 2 * np.sqrt(power.mean(axis=0)) / hann.sum()


def signals() -> Figure:
    """One window, the spectrum, and the envelope's spectrum, of a machine in each of the four conditions."""
    machine = drawn_machine(np.random.default_rng(MACHINE))
    shaft_hz = machine.shaft_hz * (1 - LAW.droop * np.mean(LAW.load))
    rolled_hz = shaft_hz * (1 - machine.slip)
    bearing, frequency_hz = machine.bearing, np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE_HZ)
    formulas = {
        "outer race": ("BPFO", bearing.outer),
        "inner race": ("BPFI", bearing.inner),
        "ball": ("2 BSF", 2 * bearing.spin),
    }
    figure = Figure(figsize=(12, 9), layout="constrained")
    for row, fault in zip(figure.subplots(4, 3), FAULTS, strict=True):
        x = windows(machine, fault, SIZES_MM[-1])
        colour = f"C{FAULTS.index(fault)}"
        row[0].plot(1e3 * np.arange(WINDOW) / SAMPLE_RATE_HZ, x[0], color=colour, linewidth=0.6)
        row[0].set(xlabel="time (ms)", ylabel="acceleration (g)", title=f"{fault}: one window")
        row[1].plot(frequency_hz / 1e3, amplitude(x), color=colour, linewidth=0.8)
        row[1].set(xlabel="frequency (kHz)", ylabel="amplitude (g)", title="spectrum", ylim=(0, None))
        shown = frequency_hz < 600
        row[2].plot(frequency_hz[shown], amplitude(envelope(x))[shown], color=colour, linewidth=0.8)
        row[2].set(xlabel="frequency (Hz)", ylabel="amplitude (g)", title="spectrum of the envelope", ylim=(0, None))
        row[2].axvline(shaft_hz, color="grey", linestyle=":", linewidth=1, label=f"shaft, {shaft_hz:.0f} Hz")
        if fault in formulas:
            name, ratio = formulas[fault]
            at_hz = ratio * rolled_hz
            row[2].axvline(at_hz, color="black", linestyle="--", linewidth=1, label=f"{name}, {at_hz:.0f} Hz")
        row[2].legend(loc="upper right")
    return figure


def machines() -> Figure:
    """The way to the sensor of eight machines, and the envelopes of one fault on each."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    frequency_hz = np.linspace(0, SAMPLE_RATE_HZ / 2, 1000)
    for number in range(6):
        machine = drawn_machine(np.random.default_rng([5, number]))
        label = f"{machine.bearing.name}, {machine.shaft_hz:.0f} Hz"
        left.plot(frequency_hz / 1e3, 20 * np.log10(np.abs(machine.path(frequency_hz)) + 1e-3), label=label)
        x = envelope(windows(machine, "inner race", SIZES_MM[-1]))
        orders = np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE_HZ) / (machine.shaft_hz * (1 - LAW.droop * np.mean(LAW.load)))
        shown = orders < 14
        right.plot(orders[shown], amplitude(x)[shown], linewidth=0.9)
    left.set(xlabel="frequency (kHz)", ylabel="gain (dB)", title="from the bearing to the sensor", ylim=(-45, 15))
    left.legend(title="bearing, shaft", ncols=2, loc="lower right")
    right.set(xlabel="frequency (turns of the shaft)", ylabel="amplitude (g)", ylim=(0, None))
    right.set_title("inner race, 0.53 mm: spectrum of the envelope")
    return figure


if __name__ == "__main__":
    for draw in (signals, machines):
        with mpl.rc_context({**RC, "figure.dpi": 72, "savefig.dpi": 72}):
            print(save_figure(draw(), IMAGES / f"bearings_{draw.__name__}.png"))
