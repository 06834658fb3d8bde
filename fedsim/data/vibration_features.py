"""What is learned of a window of vibration: the window itself, or the spectrum of its envelope.

Envelope analysis is how bearings are watched (R. B. Randall, J. Antoni, *Rolling element bearing diagnostics - A
tutorial*, Mechanical Systems and Signal Processing 25, 2011, section 4): impacts are seen as a modulation of what they
make resonate, so that a fault's frequency stands alone at low frequencies. A sensor that computes it learns from, and
would send, an eighth of the numbers. Left out: a band that follows the resonance (spectral kurtosis), and orders of the
shaft in place of frequencies.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Features", "envelope_bins", "envelope_spectra", "features_of", "normalised_rows"]

Features: TypeAlias = Literal["waveform", "envelope_spectrum"]

BAND_FROM_HZ = 1000.0
"""Above the shaft's harmonics, and up to half of the sampling rate."""
HIGHEST_HZ = 1500.0
"""Of the envelope."""
AT_ONCE = 2**18  # numbers: they stay near the processor


def envelope_bins(window: int, rate_hz: float) -> int:
    """How many frequencies there are up to `HIGHEST_HZ`, without zero.

    >>> envelope_bins(2048, 12_000.0)
    256
    """
    return min(math.floor(window * HIGHEST_HZ / rate_hz), window // 2)


def envelope_spectra(x: NDArray[np.floating], rate_hz: float) -> NDArray[np.float64]:
    """(windows, bins) amplitudes at the multiples of rate / length, for (windows, length) measurements.

    The band above 1 kHz, the size of its analytic signal, less its mean, with a Hann window; amplitudes are in the unit
    of *x*: a modulation of size a gives about a.
    """
    length = x.shape[1]
    bins = envelope_bins(length, rate_hz)
    band = np.fft.fftfreq(length, 1 / rate_hz) >= BAND_FROM_HZ
    hann = np.hanning(length)
    spectra = np.empty((len(x), bins))
    at_once = -(-AT_ONCE // length)
    for begin in range(0, len(x), at_once):
        some = x[begin : begin + at_once].astype(np.float64)
        envelope = 2 * np.abs(np.fft.ifft(np.where(band, np.fft.fft(some), 0)))
        envelope -= envelope.mean(axis=1, keepdims=True)
        spectra[begin : begin + at_once] = np.abs(np.fft.rfft(envelope * hann))[:, 1 : bins + 1]
    spectra *= 2 / hann.sum()
    return spectra


def features_of(x: NDArray[np.floating], features: Features, rate_hz: float) -> NDArray[np.floating]:
    """(windows, numbers) what is learned of (windows, length) measurements."""
    return x if features == "waveform" else envelope_spectra(x, rate_hz)


def normalised_rows(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """(windows, numbers) with mean 0 and deviation 1 in each row; a constant row becomes 0.

    >>> normalised_rows(np.array([[1.0, 3.0], [5.0, 5.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    made = np.empty(rows.shape, np.float32)
    at_once = -(-AT_ONCE // rows.shape[1])
    for begin in range(0, len(rows), at_once):
        values = rows[begin : begin + at_once].astype(np.float64)
        values -= values.mean(axis=1, keepdims=True)
        deviation = values.std(axis=1, keepdims=True)
        made[begin : begin + at_once] = values / np.where(deviation > 0, deviation, math.inf)
    return made
