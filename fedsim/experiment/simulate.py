"""One protocol on one seed: the clock runs from zero until the protocol has ended or the simulated time is over."""

from __future__ import annotations

from simpy import AnyOf

from fedsim.kernel.gather import at_the_end_of
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.protocols.world import World

__all__ = ["simulate"]


def simulate(world: World, protocol: Protocol, stop: Stop) -> None:
    """Run *protocol* in *world* to its end. What happens exactly at ``stop.sim_time_s`` still counts."""
    ended = world.env.process(protocol.run(world))
    if stop.sim_time_s is None:
        world.env.run(until=ended)
    else:
        world.env.run(until=AnyOf(world.env, [ended, at_the_end_of(world.env, stop.sim_time_s, after=1)]))
    world.loop.conclude()
