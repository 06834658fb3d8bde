"""One protocol on one seed: the clock runs from zero until the protocol has ended or the simulated time is over."""

from __future__ import annotations

from simpy import AnyOf, Event

from fedsim.experiment.gc_policy import rare_collections
from fedsim.kernel.gather import at_the_end_of
from fedsim.protocols.newcomers import Joining, NewcomersSettings
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import NobodyLeft, Stop
from fedsim.protocols.world import World

__all__ = ["join", "simulate"]


def simulate(world: World, protocol: Protocol, stop: Stop) -> None:
    """Run *protocol* in *world* to its end. What happens exactly at ``stop.sim_time_s`` still counts."""
    ended: Event = world.env.process(protocol.run(world))
    if stop.sim_time_s is not None:
        ended = AnyOf(world.env, [ended, at_the_end_of(world.env, stop.sim_time_s, after=1)])
    try:
        with rare_collections(journeys=len(world.clients)):
            world.env.run(until=ended)
    except NobodyLeft as reason:
        world.loop.cut_short = str(reason)
    world.loop.conclude()


def join(world: World, settings: NewcomersSettings) -> dict[str, float]:
    """Let the newcomers of a run that has ended in *world* train; columns of its summary."""
    joining = Joining(world, settings)
    world.env.run(until=world.env.process(joining.run()))
    return joining.columns()
