"""Every random draw of a simulation comes from a named stream: a pure function of (seed, purpose, index, use).

Numbers are drawn by the counter-based Philox4x64 generator (Salmon et al., *Parallel random numbers: as easy as 1, 2,
3*, SC 2011), keyed by a hash of the name. Nothing depends on the order in which streams are opened, so protocols that
run on the same seed share their data, their network and their cohorts (common random numbers).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

__all__ = ["Stream", "Streams"]


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream's name. ``index`` is canonical (a client's position, never its label); ``use`` counts repetitions."""

    seed: int
    purpose: str
    index: int = 0
    use: int = 0

    @property
    def text(self) -> str:
        """The canonical name.

        >>> Stream(1, "batches", 7, 2).text
        '1/batches/7/2'
        """
        return f"{self.seed}/{self.purpose}/{self.index}/{self.use}"

    @property
    def key(self) -> int:
        """What numbers are drawn with: 128 bits of the name's hash."""
        return int.from_bytes(self._hash(), "little")

    def generator(self) -> np.random.Generator:
        """A fresh generator at the stream's beginning; two calls give the same numbers."""
        return np.random.Generator(np.random.Philox(_Words(self._hash())))  # type: ignore[arg-type]  # not in its stub

    def _hash(self) -> bytes:
        return hashlib.blake2b(self.text.encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Streams:
    """All streams of one seed: ``streams("batches", client_index, use)``."""

    seed: int

    def __call__(self, purpose: str, index: int = 0, use: int = 0) -> Stream:
        """The stream of *purpose* for the *index*-th client, link or cell, at its *use*-th time."""
        return Stream(self.seed, purpose, index, use)


class _Words(ISeedSequence):
    """The 128 bits of a key, for a generator that asks for its seed.

    ``Philox(key=...)`` yields the same numbers. It also asks the system for entropy, and takes four times as long.
    """

    def __init__(self, key: bytes) -> None:
        self._key = np.frombuffer(key, np.dtype("<u8"))

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[np.uint64]:
        """The key; that is two words of 64 bits, and Philox asks for no others."""
        assert (n_words, dtype) == (2, np.uint64)
        return self._key.astype(np.uint64)
