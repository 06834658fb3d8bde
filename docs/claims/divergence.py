"""Writes fedgs_divergence.csv: how near to all data super nodes come in FedGS's scenarios, and how many devices work.

``FEDSIM_DATA=... python docs/claims/divergence.py``: ten rounds on each seed of scenarios/paper/claims_fedgs_*.yaml,
without training.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from tables import FEDGS, SCENARIO_OF, scenario_of, write

from fedsim.experiment.simulate import simulate
from fedsim.grouping.subset.gbp_cs import GBPCS
from fedsim.grouping.subset.random import RandomSubset
from fedsim.grouping.subset.selector import Chosen, distance
from fedsim.learning.learner import NoLearner
from fedsim.protocols.run_loop import Stop
from fedsim.scenario.build import build_world, gather_materials

ROUNDS = 10


class Watched(GBPCS):
    """GBP-CS, and the divergence of each super node (Eq. 6), which is |A x - y| / (n L)."""

    samples: ClassVar[int] = 1
    """n L."""
    found: ClassVar[list[float]] = []

    def choose(self, counts: ArrayLike, target: ArrayLike, size: int, rng: np.random.Generator) -> Chosen:
        """As ever."""
        chosen = super().choose(counts, target, size, rng)
        self.found.append(distance(counts, target, chosen) / self.samples)
        return chosen


class WatchedRandom(Watched):
    """Devices at random, although their counts are known."""

    def some(self, *asked: Any) -> Any:
        """One draw."""
        return RandomSubset().some(*asked)


def measured(data: str, selector: Watched) -> dict[str, Any]:
    scenario = scenario_of(SCENARIO_OF[data])
    fedgs = next(each for each in scenario.protocols if each.name == "fedgs")
    Watched.found.clear()
    Watched.samples = fedgs.devices * scenario.training.batch_size
    devices = []
    for seed in scenario.seeds:
        protocol = fedgs.model_copy(update={"selector": selector})
        materials = gather_materials(scenario, seed)
        world = build_world(scenario, protocol, materials, lambda *_: NoLearner())
        world.loop.stop = Stop(rounds=ROUNDS)
        simulate(world, protocol, world.loop.stop)
        devices.append(float(world.trace.rounds.array()["selected"].mean()))
    divergence = f"{np.mean(Watched.found):.3f}"
    return {"data": data, "divergence of a super node": divergence, "devices in a round": f"{np.mean(devices):.0f}"}


if __name__ == "__main__":
    selectors = {"GBP-CS": Watched(), "random": WatchedRandom()}
    rows = [{"selection": name, **measured(data, each)} for data in FEDGS for name, each in selectors.items()]
    write("fedgs_divergence.csv", pd.DataFrame(rows))
