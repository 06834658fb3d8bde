"""How much of a scenario is simulated before it is run: rounds, as long as their hops are not too many.

That is bounded over all protocols together: what would be too much is said to be unknown.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedsim.experiment.simulate import simulate
from fedsim.experiment.validate import seen_by
from fedsim.learning.learner import NoLearner
from fedsim.protocols.combination import Combination
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.protocols.world import World
from fedsim.scenario.build import Materials, build_world
from fedsim.scenario.closed_forms import closed_form
from fedsim.scenario.schema import Scenario
from fedsim.topology.explicit import Explicit

__all__ = ["MOST_HOPS", "Simulations"]

MOST_HOPS = 500_000
"""Over which the messages of all protocols go together: a round of a hundred thousand devices in a star has 400,000."""
WORLD_HOPS, NODE_HOPS = 100, 3
"""A world takes as long to build as so many hops to simulate, and as so many for each of its nodes."""
LARGE_NODES, LARGE_NODE_HOPS = 100_000, 2
"""A network of more nodes has taken as long before as so many hops for each further one."""
LISTED_HOPS = 3
"""And one that is listed node by node, for each entry."""
LARGE_SAMPLES, SAMPLES_PER_HOP = 100_000, 3
"""And more samples, for three further ones each."""
PAIRS_PER_HOP = 3
"""Of clients and clusters, when groups are formed by class counts: some take 1 us, some 5, and a hop 10."""
MOST_LEFT_BEHIND = 20_000
"""Clients and hops of worlds that are over: those are full of cycles, and large ones leave little room for others."""


@dataclass
class Simulations:
    """Of one scenario: what is left of as many hops as may be simulated, and worlds for it."""

    scenario: Scenario
    materials: Materials
    wires_to_server: float
    most: int
    left: float
    fresh: list[World]
    _left_behind: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.left -= self._large_hops + self._data_hops

    @property
    def some_rounds_finetune(self) -> bool:
        """Whether some rounds include the fine-tuning before an evaluation, and others do not."""
        return self.scenario.evaluate.finetune_timed and self.scenario.evaluate.every > 1

    def affordable_rounds(self, protocol: Protocol, most: int) -> int:
        """How many rounds may be simulated, of the first *most*, in a world of their own."""
        hops = np.cumsum(self._message_hops(protocol, most) + self._grouping_hops(protocol, most))
        return int(np.searchsorted(hops, self.left - self._world_hops(protocol), side="right"))

    def why_not(self, protocol: Protocol) -> str:
        """That a round is too much."""
        hops = float(self._message_hops(protocol, 1)[0])
        extras = {
            "forming its groups": self._grouping_hops(protocol, 1)[0],
            "building its network": self._world_hops(protocol),
            "so large a network": self._large_hops,
            "so many samples": self._data_hops,
        }
        counted = "".join(f", {what} counts as {extra:,.0f}" for what, extra in extras.items() if extra)
        return f"the messages of a round lead over about {hops:,.0f} hops{counted}, and {self._limit}"

    def why_not_all(self, rounds: int) -> str:
        """That a run of more than so many *rounds* is too much."""
        return f"the run has more than {rounds:,} rounds, and {self._limit}"

    def simulated(self, protocol: Protocol, few: Stop, most_rounds: int) -> World:
        """A world in which *few* rounds have happened, at most *most_rounds* of them."""
        self.left -= self._world_hops(protocol)
        short = protocol.model_copy(update={"stop": few})
        if self._has_one_for(protocol):
            world = seen_by(short, self.fresh.pop(), self.scenario)
        else:
            world = build_world(self.scenario, short, self.materials, lambda *_: NoLearner())
        simulate(world, short, few)
        begun = min(len(world.loop.rounds_done) + 1, most_rounds)
        self.left -= len(world.trace.hops) + float(self._grouping_hops(protocol, begun).sum())
        self._left_behind += len(world.clients) + len(world.trace.hops)
        return world

    def sweep(self) -> None:
        """Give back the memory of worlds that are over, once it is some."""
        if self._left_behind > MOST_LEFT_BEHIND:
            gc.collect()
            self._left_behind = 0

    @property
    def _limit(self) -> str:
        return f"describe simulates at most {self.most:,} for all protocols together; more with --most-hops"

    def _has_one_for(self, protocol: Protocol) -> bool:
        """Whether a fresh world is of the model that *protocol* trains, and of what its clients train on."""
        if not self.fresh:
            return False
        world, table = self.fresh[-1], self.materials.table_for(protocol, self.materials.table)
        return world.model is table and world.dataset is self.materials.data_for(protocol)

    def _world_hops(self, protocol: Protocol) -> int:
        return 0 if self._has_one_for(protocol) else WORLD_HOPS + NODE_HOPS * len(self.materials.topology.graph)

    @property
    def _large_hops(self) -> int:
        topology = self.scenario.topology
        listed = len(topology.nodes) + len(topology.links) if isinstance(topology, Explicit) else 0
        return LARGE_NODE_HOPS * max(0, len(self.materials.topology.graph) - LARGE_NODES) + LISTED_HOPS * listed

    @property
    def _data_hops(self) -> int:
        targets = self.materials.dataset.y
        return 0 if targets is None else max(0, len(targets) - LARGE_SAMPLES) // SAMPLES_PER_HOP

    def _message_hops(self, protocol: Protocol, rounds: int) -> NDArray[np.float64]:
        """Of each of so many rounds."""
        if isinstance(protocol, Combination) and (schedule := protocol.when()).at_stations:
            return np.full(rounds, self._station_hops(protocol, schedule.block_length()))
        sensors = len(self.materials.topology.sensors)
        form = closed_form(protocol)
        models = 2 * (sensors if form is None else form.mean_cohort(sensors))
        reports = sensors * (self._groups_formed(protocol, rounds) > 0)
        tuned = sensors if self.scenario.evaluate.finetune_timed else 0
        hops: NDArray[np.float64] = np.maximum((models + reports + tuned) * (1 + self.wires_to_server), 1.0)
        return hops

    def _station_hops(self, protocol: Combination, iterations: int) -> float:
        """Of a round: by air in each iteration, and as many for selecting devices, and by wires."""
        topology = self.materials.topology
        stations = len({topology.cell_of(sensor) for sensor in topology.sensors})
        training, reports = protocol.who().messages_at_stations(len(topology.sensors), stations)
        selected = len(topology.sensors) if reports else 0
        return iterations * (2 * training + reports + selected) + 2 * stations * self.wires_to_server

    def _grouping_hops(self, protocol: Protocol, rounds: int) -> NDArray[np.float64]:
        """The same, of what it takes to form groups: M groups are made of *sensors* / M clusters."""
        sensors = len(self.materials.topology.sensors)
        groups = self._groups_formed(protocol, rounds)
        groups[groups == 0] = np.inf
        hops: NDArray[np.float64] = sensors**2 / groups / PAIRS_PER_HOP
        return hops

    def _groups_formed(self, protocol: Protocol, rounds: int) -> NDArray[np.float64]:
        """By class counts, in each of so many rounds."""
        form, sensors = closed_form(protocol), len(self.materials.topology.sensors)
        return np.array((0,) * rounds if form is None else form.groups_by_counts(sensors, rounds), np.float64)
