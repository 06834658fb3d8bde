"""Sound files: RIFF/WAVE with one channel of 16-bit samples (IBM, Microsoft, *Multimedia Programming Interface*, 1991).

Leaves out compressed sound, other sample sizes, several channels, and resampling.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.blobs import read_blob
from fedsim.errors import UserError
from fedsim.files import shown

__all__ = ["read_wav"]

PCM = 1
EXTENSIBLE = 0xFFFE  # says in its first two extra bytes what PCM says at once
SAMPLE_BYTES = 2
MOST_BYTES = 100_000_000


class _Bad(Exception):
    """What is wrong with the file."""


def read_wav(path: Path, *, rate_hz: int) -> NDArray[np.int16]:
    """(samples,) what the file at *path* plays at *rate_hz*.

    Raises `UserError` with path, value, rule and way out when it is no such sound.
    """
    content = read_blob(path, what="a sound file (.wav)", most_bytes=MOST_BYTES)
    try:
        form, data = _chunks(content)
        _check_form(form, rate_hz)
        if not data or len(data) % SAMPLE_BYTES:
            raise _Bad(f"holds {len(data)} bytes of sound, which are no samples of {SAMPLE_BYTES} bytes")
    except _Bad as error:
        raise UserError(f"{shown(path)}: {error}; save it as WAV, mono, 16-bit PCM, {rate_hz} Hz") from error
    return np.frombuffer(data, "<i2").astype(np.int16)


def _chunks(content: bytes) -> tuple[bytes, bytes]:
    """What the chunks ``fmt`` and ``data`` hold; all others are passed over."""
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise _Bad("is no WAV file")
    found: dict[bytes, bytes] = {}
    place = 12
    while place + 8 <= len(content) and len(found) < 2:
        name, size = struct.unpack_from("<4sI", content, place)
        if name in (b"fmt ", b"data"):
            found[name] = content[place + 8 : place + 8 + size]
            if len(found[name]) < size:
                raise _Bad(f"ends after {len(found[name])} of the {size} bytes of its part {name.decode().strip()!r}")
        place += 8 + size + size % 2
    for name in (b"fmt ", b"data"):
        if name not in found:
            raise _Bad(f"has no part {name.decode().strip()!r}")
    return found[b"fmt "], found[b"data"]


def _check_form(form: bytes, rate_hz: int) -> None:
    if len(form) < 16:
        raise _Bad(f"describes its sound in {len(form)} bytes, and 16 are needed")
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", form)
    if kind == EXTENSIBLE and len(form) >= 26:
        (kind,) = struct.unpack_from("<H", form, 24)
    if kind != PCM:
        raise _Bad(f"is compressed or floating-point sound (format {kind}), and format {PCM} (PCM) is needed")
    if channels != 1:
        raise _Bad(f"has {channels} channels, and one is needed")
    if bits != 8 * SAMPLE_BYTES:
        raise _Bad(f"has samples of {bits} bits, and {8 * SAMPLE_BYTES} are needed")
    if rate != rate_hz:
        raise _Bad(f"has {rate} samples per second, and {rate_hz} are needed")
