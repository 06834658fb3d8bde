"""What a clip of sound looks like to a model: the logarithm of its power in bands of equal width on the mel scale.

Short-time spectra with a Hann window, triangular bands and the mel scale of HTK (S. Young et al., *The HTK Book*,
version 3.4, 2006, section 5.4). Left out: pre-emphasis, dither, cepstra, noise and any other augmentation.

Sound files are what `wave` of the standard library reads, as far as it is one channel of 16-bit samples. Leaves out
compressed and floating-point sound, other sample sizes, several channels, and resampling; the extensible form (format
65534) before Python 3.12, whose `wave` is the first to read it.
"""

from __future__ import annotations

import io
import wave
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.archive import read_blob
from fedsim.errors import Flaw, Misfit, UserError, in_short
from fedsim.files import shown

__all__ = ["LEAST_POWER", "LogMel", "hertz", "mel", "mel_bands", "read_wav"]

SAMPLE_BYTES = 2
RIFF_HEADER_BYTES = 12  # before the first chunk
MOST_BYTES = 100_000_000
MOST_CHUNKS = 1000  # before the sound; `wave` takes a microsecond or two for each, and some files have a dozen
DAMAGE = (wave.Error, EOFError, RuntimeError, ValueError, OverflowError)
"""What `wave` raises for damaged or hostile files."""
LEAST_POWER = 1e-10
"""Added to a band's power before the logarithm, relative to full scale: what is 100 dB below it counts as silence."""
AT_ONCE = 2**21  # numbers in the spectra of some frames: a clip of a second has 50,000
FULL_SCALE = 32768.0  # of 16-bit samples
CENTRE, SPREAD = -15.0, 4.0
"""ln(power) becomes (ln(power) - CENTRE) / SPREAD: -2 for silence, near 0 on average and 1 in spread for speech, and
the same for every set of sounds, so that nothing has to be learned from anybody's data."""


def read_wav(path: Path, *, rate_hz: int) -> NDArray[np.int16]:
    """(samples,) what the file at *path* plays at *rate_hz*.

    Raises `UserError` with path, value, rule and way out when it is no such sound.
    """
    content = read_blob(path, what="a sound file (.wav)", most_bytes=MOST_BYTES)
    try:
        return np.frombuffer(_data(content, rate_hz), "<i2").astype(np.int16)
    except Flaw as error:
        raise UserError(f"{shown(path)}: {error}; save it as WAV, mono, 16-bit PCM, {rate_hz} Hz") from error


def _data(content: bytes, rate_hz: int) -> bytes:
    _refuse_many_chunks(content)
    try:
        with wave.open(io.BytesIO(content)) as sound:
            _check_form(sound, rate_hz)
            samples = sound.getnframes()
            data: bytes = sound.readframes(samples)
    except DAMAGE as error:
        raise Flaw(f"is no WAV file that can be read ({in_short(error) or 'it ends too early'})") from error
    if not samples:
        raise Flaw("holds no samples")
    if len(data) != samples * SAMPLE_BYTES:
        raise Flaw(f"ends after {len(data)} of the {samples * SAMPLE_BYTES} bytes of its sound")
    return data


def _refuse_many_chunks(content: bytes) -> None:
    at = RIFF_HEADER_BYTES
    for _ in range(MOST_CHUNKS):
        if at >= len(content) or content[at : at + 4] == b"data":
            return
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    raise Flaw(f"has more than {MOST_CHUNKS} chunks before its sound")


def _check_form(sound: wave.Wave_read, rate_hz: int) -> None:
    if sound.getnchannels() != 1:
        raise Flaw(f"has {sound.getnchannels()} channels, and one is needed")
    if sound.getsampwidth() != SAMPLE_BYTES:
        raise Flaw(f"has samples of {8 * sound.getsampwidth()} bits, and {8 * SAMPLE_BYTES} are needed")
    if sound.getframerate() != rate_hz:
        raise Flaw(f"has {sound.getframerate()} samples per second, and {rate_hz} are needed")


def mel(frequency_hz: NDArray[np.floating[Any]] | float) -> NDArray[np.float64]:
    """The mel scale of HTK: 2595 log10(1 + f / 700 Hz).

    >>> float(mel(1000.0).round(2))
    999.99
    """
    return np.asarray(2595.0 * np.log10(1.0 + np.asarray(frequency_hz) / 700.0))


def hertz(mels: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """The frequency at so many *mels*: the inverse of `mel`."""
    return np.asarray(700.0 * (10.0 ** (np.asarray(mels) / 2595.0) - 1.0))


def mel_bands(
    bands: int, *, rate_hz: float, fft_length: int, lowest_hz: float, highest_hz: float
) -> NDArray[np.float64]:
    """(bands, fft_length // 2 + 1) weights of the frequencies k rate / fft_length in each band.

    Band i is a triangle over mels: 0 at m[i], 1 at m[i + 1], 0 at m[i + 2], where m are bands + 2 points, evenly spread
    from *lowest_hz* to *highest_hz*. Between the first and the last peak the weights of each frequency add up to 1.
    Raises `UserError` when a band lies between two frequencies and would hear nothing.
    """
    points = np.linspace(mel(lowest_hz), mel(highest_hz), bands + 2)
    at = mel(np.arange(fft_length // 2 + 1) * (rate_hz / fft_length))
    rising = (at - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
    falling = (points[2:, None] - at) / (points[2:] - points[1:-1])[:, None]
    weights: NDArray[np.float64] = np.maximum(0.0, np.minimum(rising, falling))
    deaf = np.flatnonzero(weights.sum(axis=1) == 0)
    if deaf.size:
        raise Misfit(
            f"bands={bands}: band {deaf[0]} lies between two of the frequencies that a window tells apart "
            f"({rate_hz / fft_length:g} Hz); use fewer bands or a longer window",
            "bands",
        )
    return weights


@dataclass(frozen=True)
class LogMel:
    """How clips become features of shape (1, bands, frames)."""

    rate_hz: int
    duration_s: float
    """Every clip is cut, or filled with silence at its end, to this length."""
    window_s: float
    hop_s: float
    """From the beginning of one window to that of the next."""
    bands: int
    lowest_hz: float
    highest_hz: float

    @property
    def samples(self) -> int:
        """Of a clip."""
        return round(self.duration_s * self.rate_hz)

    @property
    def window(self) -> int:
        """Samples of a window."""
        return round(self.window_s * self.rate_hz)

    @property
    def hop(self) -> int:
        """Samples from window to window."""
        return round(self.hop_s * self.rate_hz)

    @property
    def frames(self) -> int:
        """Windows that lie in a clip: 1 + floor((samples - window) / hop)."""
        return 1 + (self.samples - self.window) // self.hop

    @property
    def fft_length(self) -> int:
        """The power of two that holds a window."""
        return int(2 ** np.ceil(np.log2(self.window)))

    @cached_property
    def _hann(self) -> NDArray[np.float64]:
        """(window,) sin^2(pi n / window), over its sum, so that a sine of amplitude A peaks at a power of (A/2)^2."""
        window = np.sin(np.pi * np.arange(self.window) / self.window) ** 2
        normalised: NDArray[np.float64] = window / window.sum()
        return normalised

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """(bands, frequencies), see `mel_bands`."""
        return mel_bands(
            self.bands,
            rate_hz=self.rate_hz,
            fft_length=self.fft_length,
            lowest_hz=self.lowest_hz,
            highest_hz=self.highest_hz,
        )

    def power(self, clip: NDArray[np.int16]) -> NDArray[np.float64]:
        """(frames, frequencies) |sum over n of h[n] x[n] exp(-2 pi i k n / fft_length)|^2 of the clip, cut or filled;
        h is the Hann window over its sum, and full scale is 1."""
        return self._power(self._frames(clip))

    def features(self, clip: NDArray[np.int16]) -> NDArray[np.float32]:
        """(1, bands, frames) (ln(band's power + LEAST_POWER) - CENTRE) / SPREAD."""
        frames = self._frames(clip)
        at_once = max(AT_ONCE // self.fft_length, 1)
        parts = np.split(frames, range(at_once, len(frames), at_once))
        bands = np.concatenate([self.weights @ self._power(part).T for part in parts], axis=1)
        return ((np.log(bands + LEAST_POWER) - CENTRE) / SPREAD).astype(np.float32)[None]

    def _frames(self, clip: NDArray[np.int16]) -> NDArray[np.float64]:
        """(frames, window) of the clip, cut or filled; they share its memory where they overlap."""
        filled = np.zeros(self.samples)
        kept = clip[: self.samples]
        filled[: len(kept)] = kept / FULL_SCALE
        return np.lib.stride_tricks.sliding_window_view(filled, self.window)[:: self.hop]

    def _power(self, frames: NDArray[np.float64]) -> NDArray[np.float64]:
        spectra = np.fft.rfft(frames * self._hann, self.fft_length)
        squared: NDArray[np.float64] = spectra.real**2 + spectra.imag**2
        return squared
