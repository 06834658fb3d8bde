"""One protocol on one seed: the clock runs from zero until the protocol has ended or the simulated time is over."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from simpy import AnyOf, Event

from fedsim.kernel.gather import at_the_end_of
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import NobodyLeft, Stop
from fedsim.protocols.world import World

__all__ = ["simulate"]


def simulate(world: World, protocol: Protocol, stop: Stop) -> None:
    """Run *protocol* in *world* to its end. What happens exactly at ``stop.sim_time_s`` still counts."""
    ended: Event = world.env.process(protocol.run(world))
    if stop.sim_time_s is not None:
        ended = AnyOf(world.env, [ended, at_the_end_of(world.env, stop.sim_time_s, after=1)])
    try:
        with _rare_collections():
            world.env.run(until=ended)
    except NobodyLeft as reason:
        world.loop.cut_short = str(reason)
    world.loop.conclude()


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Keep Python's garbage collector from looking at the whole world again and again.

    A world is millions of small objects that live until its end, and the clock leaves hardly any cycles behind. So what
    exists now is set aside, and what comes is looked at seldom; cycles that a learner leaves are found all the same.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
