"""Groups in sequence as a test wants them: by the clients' indices, in their order, round after round."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

from plain_learner import PlainLearner
from simpy import Event
from small_worlds import prepared

from fedsim.kernel.trace import Outcome
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import ServerRule
from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.cohort import Cohort, Draw, Group
from fedsim.protocols.cohorts.random import eligible_clients
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.schedules.rounds import Rounds
from fedsim.protocols.schedules.schedule import Parts
from fedsim.protocols.world import World


class Chains(Cohort):
    """Always the same groups; a round begins when anybody can be reached."""

    name: Literal["chains"] = "chains"
    chains: tuple[tuple[int, ...], ...]

    def begin(self, deadline_s: float | None) -> Draw:
        return _ChainsDraw(self.chains)

    def mean_size(self, clients: int) -> float:
        return float(sum(map(len, self.chains)))


class _ChainsDraw(Draw):
    def __init__(self, chains: Sequence[Sequence[int]]) -> None:
        self.chains = chains

    def groups(self, world: World, at: BlockRound) -> Generator[Event, Any, Sequence[Group]]:
        yield from eligible_clients(world)
        return [[world.clients[index] for index in chain] for chain in self.chains]


def relayed(
    changes: dict[str, Any],
    *chains: Sequence[int],
    on_loss: Literal["skip", "abandon"] = "skip",
    turn_s: float | None = None,
    deadline_s: float | None = None,
    weighting: Literal["samples", "uniform"] = "uniform",
    learner: PlainLearner | None = None,
    rule: ServerRule | None = None,
) -> World:
    """A world in which *chains* have trained, in parallel to each other, until its stop."""
    world, _ = prepared(changes, **({"learner": lambda *_: learner} if learner else {}))
    schedule = Rounds(weighting=weighting, deadline_s=deadline_s, on_loss=on_loss, turn_s=turn_s)
    parts = Parts(Chains(chains=tuple(map(tuple, chains))), Whole(), Plain(), Float32(), rule or Mean())
    world.env.run(until=world.env.process(schedule.run(world, parts)))
    return world


def ended(world: World) -> list[tuple[float, int, int, int, int]]:
    """When each round ended, and how many were selected, took part, were lost and were late."""
    rows: list[tuple[float, int, int, int, int]] = world.trace.rounds.array()[
        ["end_s", "selected", "participants", "lost", "late"]
    ].tolist()
    return rows


def work(world: World) -> list[tuple[int, float, float, str]]:
    """Who worked from when to when, and how that ended."""
    rows = world.trace.work.array()[["client", "start_s", "end_s", "outcome"]].tolist()
    return [(client, start_s, end_s, Outcome(outcome).name.lower()) for client, start_s, end_s, outcome in rows]


def over_the_air(world: World) -> dict[str, float]:
    """Bytes on the clients' own hops, by direction."""
    return {direction.value: bytes_ for direction, bytes_ in world.network.access_bytes.items()}


def on_the_wires(world: World) -> list[tuple[int, str, str, float]]:
    """Client, wire, direction and bytes of each crossing of a wire, in the order in which they ended."""
    hops = world.trace.hops.array()
    return [
        (int(row["client"]), world.network.links[row["link"]].label, "up" if row["uplink"] else "down", row["bytes"])
        for row in hops[~hops["access"]]
    ]
