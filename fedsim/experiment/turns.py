"""In what order a run takes its protocols and seeds: as the scenario has them, but later what another run trains."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

__all__ = ["Turns"]


class Turns(Iterator[int]):
    """The numbers below *count*, each until it is not put off.

    *waits* is called when all that are left were put off, with those who train them.

    >>> turns = Turns(3, lambda holders: print("waits for", *holders))
    >>> next(turns), turns.put_off(0, "process 7"), next(turns), next(turns)
    (0, None, 1, 2)
    >>> turns.patient, next(turns), turns.patient, list(turns)
    waits for process 7
    (False, 0, True, [])
    """

    def __init__(self, count: int, waits: Callable[[Sequence[str]], None]) -> None:
        self._next = deque(range(count))
        self._put_off: dict[int, str] = {}
        self._waits = waits
        self.patient = False
        """Whether there is nothing else to do than what was put off, so that one may as well wait for it."""

    def __next__(self) -> int:
        self.patient = not self._next and bool(self._put_off)
        if self.patient:
            self._waits(list(dict.fromkeys(self._put_off.values())))
            self._next.extend(self._put_off)
            self._put_off.clear()
        if not self._next:
            raise StopIteration
        return self._next.popleft()

    def put_off(self, number: int, holder: str) -> None:
        """It comes again, when all others have had their turn; *holder* trains it now."""
        self._put_off[number] = holder
