"""Sound files: what `wave` of the standard library reads, as far as it is one channel of 16-bit samples.

Leaves out compressed and floating-point sound, other sample sizes, several channels, and resampling; the extensible
form (format 65534) before Python 3.12, whose `wave` is the first to read it.
"""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.blobs import read_blob
from fedsim.errors import Flaw, UserError, in_short
from fedsim.files import shown

__all__ = ["read_wav"]

SAMPLE_BYTES = 2
RIFF_HEADER_BYTES = 12  # before the first chunk
MOST_BYTES = 100_000_000
MOST_CHUNKS = 1000  # before the sound; `wave` takes a microsecond or two for each, and some files have a dozen
DAMAGE = (wave.Error, EOFError, RuntimeError, ValueError, OverflowError)
"""What `wave` raises for damaged or hostile files."""


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
    declared = _declared_bytes(content)
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
    if declared % SAMPLE_BYTES:  # `wave` rounds down to whole samples
        raise Flaw(f"has {declared} bytes of sound, which are no whole number of samples of {SAMPLE_BYTES} bytes")
    return data


def _declared_bytes(content: bytes) -> int:
    """How long the sound is by its chunk's header; 0 in a file in which there is no such chunk, as `wave` will say."""
    at = RIFF_HEADER_BYTES
    for _ in range(MOST_CHUNKS):
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        if at >= len(content):
            return 0
        if content[at : at + 4] == b"data":
            return size
        at += 8 + size + size % 2
    raise Flaw(f"has more than {MOST_CHUNKS} chunks before its sound")


def _check_form(sound: wave.Wave_read, rate_hz: int) -> None:
    if sound.getnchannels() != 1:
        raise Flaw(f"has {sound.getnchannels()} channels, and one is needed")
    if sound.getsampwidth() != SAMPLE_BYTES:
        raise Flaw(f"has samples of {8 * sound.getsampwidth()} bits, and {8 * SAMPLE_BYTES} are needed")
    if sound.getframerate() != rate_hz:
        raise Flaw(f"has {sound.getframerate()} samples per second, and {rate_hz} are needed")
