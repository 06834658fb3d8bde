"""Every random draw of a simulation comes from a named stream: a pure function of (seed, purpose, index, use).

Numbers are drawn by the counter-based Philox4x64 generator (Salmon et al., *Parallel random numbers: as easy as 1, 2,
3*, SC 2011), keyed by a hash of the name. Nothing depends on the order in which streams are opened, so protocols that
run on the same seed share their data, their network and their cohorts (common random numbers).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

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
        return int.from_bytes(hashlib.blake2b(self.text.encode(), digest_size=16).digest(), "little")

    def generator(self) -> np.random.Generator:
        """A fresh generator at the stream's beginning; two calls give the same numbers."""
        return np.random.Generator(np.random.Philox(key=self.key))


@dataclass(frozen=True, slots=True)
class Streams:
    """All streams of one seed: ``streams("batches", client_index, use)``."""

    seed: int

    def __call__(self, purpose: str, index: int = 0, use: int = 0) -> Stream:
        """The stream of *purpose* for the *index*-th client, link or cell, at its *use*-th time."""
        return Stream(self.seed, purpose, index, use)
