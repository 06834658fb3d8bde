"""Recordings of bearings that are tests as a whole: of motor loads, or of fault sizes, that nobody trains on.

Bearings with seeded faults were mounted one after the other and recorded at each load, so faults of different sizes are
in different bearings. Left out: tests on an unseen normal bearing, as the source has only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.cwru import Recording
from fedsim.errors import Misfit

__all__ = ["UnseenRecordings"]

NORMAL = "normal"


@dataclass(frozen=True)
class UnseenRecordings:
    """What is named by the keys ``test_loads`` and ``test_sizes_mil``; where both are, tests are of both."""

    loads_hp: tuple[int, ...] = ()
    sizes_mil: tuple[int, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Those that name something."""
        keys = {"test_loads": self.loads_hp, "test_sizes_mil": self.sizes_mil}
        return tuple(key for key, named in keys.items() if named)

    def test_share(self, recording: Recording) -> float | None:
        """1 of a test, 0 of what is trained on, and None of what is neither: of a load that is named and not of a size,
        or the other way round. Where nothing is named, all are trained on.

        >>> small, large = (Recording("", "B", mil, 3, np.empty(0, np.float32)) for mil in (7, 14))
        >>> [UnseenRecordings(sizes_mil=(14,)).test_share(one) for one in (small, large)]
        [0.0, 1.0]
        >>> [UnseenRecordings((3,), (14,)).test_share(one) for one in (small, large)]
        [None, 1.0]
        """
        named = ((self.loads_hp, recording.load_hp), (self.sizes_mil, recording.size_mil))
        found = {value in unseen for unseen, value in named if unseen}
        return None if len(found) == 2 else float(True in found)

    def kept(self, recordings: Sequence[Recording]) -> list[Recording]:
        """Those that are trained or tested on. Raises `Misfit` where nothing is, or a value is named that is in none.

        Sizes are those of faults, so the normal bearing has none.
        """
        sizes = {recording.size_mil for recording in recordings if recording.fault != NORMAL}
        self._check("test_loads", self.loads_hp, {recording.load_hp for recording in recordings}, "hp")
        self._check("test_sizes_mil", self.sizes_mil, sizes, "mil")
        shares = [self.test_share(recording) for recording in recordings]
        for share, use in ((0.0, "train"), (1.0, "test")):
            if self.keys and share not in shares:
                raise self._misfit(f"leaves no recording to {use} on; name {'fewer' if use == 'train' else 'others'}")
        return [recording for recording, share in zip(recordings, shares, strict=True) if share is not None]

    def remarks(
        self, recordings: Sequence[Recording], y: NDArray[np.int64], test: NDArray[np.bool_], names: Sequence[str]
    ) -> Iterator[str]:
        """What is tested, of all *recordings* that could be; *y* and *test* are of each window, *names* of the classes.

        Raises `Misfit` where tests have a class that nobody trains on.
        """
        if not self.keys:
            return
        trained, tested = set(y[~test].tolist()), set(y[test].tolist())
        if unknown := sorted(tested - trained):
            name = names[unknown[0]]
            way_out = "name others, or set normal to drop" if name == NORMAL else "name others"
            raise self._misfit(f"makes tests of the class {name!r}, which nobody trains on then; {way_out}")
        shares = [self.test_share(recording) for recording in recordings]
        loads = [f" at {_all(self.loads_hp)} hp"] if self.loads_hp else []
        sizes = [f" with faults of {_all(self.sizes_mil)} mil"] if self.sizes_mil else []
        of = "".join(loads + sizes)
        yield f"the {shares.count(1.0)} recordings{of} are the tests; {shares.count(0.0)} others are trained on"
        if left := shares.count(None):
            yield f"{left} recordings were left out: of such a load or of such a size, and not of both"
        if untested := sorted(trained - tested):
            missing = ", ".join(names[label] for label in untested)
            yield f"tests have no samples of {missing}: results do not tell how well that is recognised"

    def _check(self, key: str, named: Sequence[int], there: set[int], unit: str) -> None:
        for value in named:
            if value not in there:
                raise Misfit(f"{key}: no recording is of {value} {unit}; there are {_all(sorted(there))} {unit}", key)

    def _misfit(self, problem: str) -> Misfit:
        named = {"test_loads": self.loads_hp, "test_sizes_mil": self.sizes_mil}
        said = " and ".join(f"{key}={list(named[key])}" for key in self.keys)
        return Misfit(f"{said} {problem}", self.keys[0])


def _all(values: Sequence[int]) -> str:
    """
    >>> _all([0]), _all([0, 1, 3])
    ('0', '0, 1 and 3')
    """
    first = ", ".join(map(str, values[:-1]))
    return f"{first} and {values[-1]}" if first else str(values[-1])
