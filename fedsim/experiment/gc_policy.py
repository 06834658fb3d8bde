"""Python's garbage collector, kept from looking at a whole simulated world again and again.

A world is millions of small objects that live until its end, and the clock leaves hardly any cycles behind. So the
collector looks at what is new only after a hundred thousand objects instead of seven hundred, and while a world runs
only after as many more as its journeys are made of; cycles that a learner leaves are found all the same, if later, and
a world that is over is given back at once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rare_collections", "set_aside", "set_aside_for_good"]

MANY_OBJECTS = 100_000
OBJECTS_PER_JOURNEY = 10
"""At the most at one time: a trip and its generator, a message or local work, their lists of who waits."""
_set_aside: list[bool] = []
"""An element for each block of `set_aside` that this process is in, and one for `set_aside_for_good`."""


@contextmanager
def rare_collections(*, journeys: int = 0) -> Iterator[None]:
    """Let the collector run seldom inside, and not for the sake of so many *journeys* that are under way together.

    Inside of another such block it runs no more often than there.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(max(MANY_OBJECTS + OBJECTS_PER_JOURNEY * journeys, thresholds[0]), 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def set_aside_for_good() -> None:
    """For a process of many runs, such as tests or a notebook: what exists now is not looked at any more, nor given
    back at the end of a run, and runs set nothing aside themselves."""
    _set_aside.append(True)
    gc.freeze()


@contextmanager
def set_aside(*, journeys: int = 0) -> Iterator[None]:
    """As `rare_collections`; and inside, the collector does not look at what exists at the beginning.

    This holds for `gc.collect` too. So a world that was built inside is given back at its end without a look at all
    modules that are loaded. Python can give back only all that is set aside at once. So a block inside of another one
    sets nothing more aside, and no block does where the caller has called `gc.freeze`.
    """
    # Python counts what is set aside one by one. That takes long only where there is some: so our own flag comes first.
    ours = not _set_aside and not gc.get_freeze_count()
    if ours:
        gc.freeze()
    _set_aside.append(True)
    try:
        with rare_collections(journeys=journeys):
            yield
    finally:
        _set_aside.pop()
        if ours and not _set_aside:  # an element that is left says: inside, something was set aside for good
            gc.unfreeze()
