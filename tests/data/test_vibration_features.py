"""The spectrum of an envelope shows a modulation at its frequency, with its size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import hilbert

from fedsim.data.vibration_features import envelope_bins, envelope_spectra, normalised_rows

RATE_HZ = 12_000.0
TIME_S = np.arange(2048) / RATE_HZ


def modulated(depth: float, modulation_hz: float, carrier_hz: float = 3000.0) -> np.ndarray:
    return (1 + depth * np.cos(2 * np.pi * modulation_hz * TIME_S)) * np.cos(2 * np.pi * carrier_hz * TIME_S)


@pytest.mark.parametrize("number", [10, 37, 200])
def test_a_modulation_is_a_line_of_its_size(number: int) -> None:
    hz = number * RATE_HZ / 2048
    (spectrum,) = envelope_spectra(3.0 * modulated(0.4, hz)[None], RATE_HZ)
    assert spectrum.shape == (256,)
    assert spectrum.argmax() == number - 1  # there is none of frequency 0
    assert spectrum.max() == pytest.approx(3.0 * 0.4, rel=0.01)
    assert np.delete(spectrum, [number - 2, number - 1, number]).max() < 0.02  # but for the window's two neighbours


def test_it_is_that_of_the_analytic_signal() -> None:
    """Of SciPy's, where the band holds all there is."""
    x = np.random.default_rng(1).standard_normal((5, 2048))
    spectrum = np.fft.rfft(x)
    spectrum[:, np.fft.rfftfreq(2048, 1 / RATE_HZ) < 1000] = 0
    spectrum[:, -1] = 0  # half of the sampling rate counts as negative
    envelope = np.abs(hilbert(np.fft.irfft(spectrum, 2048)))
    envelope -= envelope.mean(axis=1, keepdims=True)
    expected = np.abs(np.fft.rfft(envelope * np.hanning(2048)))[:, 1:257] * 2 / np.hanning(2048).sum()
    assert envelope_spectra(x, RATE_HZ) == pytest.approx(expected, abs=1e-12)


def test_what_is_below_the_band_is_not_seen() -> None:
    assert envelope_spectra(modulated(0.5, 50.0, carrier_hz=500.0)[None], RATE_HZ).max() < 0.02


def test_many_windows_are_one_after_the_other() -> None:
    """More than are computed at once."""
    x = np.random.default_rng(2).standard_normal((300, 1024))
    alone = np.concatenate([envelope_spectra(row[None], RATE_HZ) for row in x])
    assert np.array_equal(envelope_spectra(x, RATE_HZ), alone)
    rows = np.concatenate([normalised_rows(row[None]) for row in x])
    assert np.array_equal(normalised_rows(x), rows)


def test_short_windows_have_what_there_is() -> None:
    assert [envelope_bins(window, RATE_HZ) for window in (16, 1000, 2048)] == [2, 125, 256]
    assert envelope_bins(100, 2_000.0) == 50
    assert envelope_spectra(np.zeros((2, 16)), RATE_HZ).tolist() == [[0.0, 0.0]] * 2


@pytest.mark.parametrize("samples", [1, 2, 1000, 4097])
@pytest.mark.parametrize("window", [16, 64, 129, 1024])
def test_samples_are_normalised_by_the_same_bits_one_by_one_and_together(samples, window):
    rng = np.random.default_rng(samples)
    x = (rng.normal(size=(samples, window)) * rng.exponential(size=(samples, 1)) + 3).astype(np.float32)
    x[-1] = 3.3
    expected = x.copy()
    for row in expected:
        values = row.astype(np.float64)
        values -= values.mean()
        deviation = values.std()
        row[:] = values / deviation if deviation > 0 else 0.0
    assert np.array_equal(normalised_rows(x), expected)
