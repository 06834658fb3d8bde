"""The schedule of most protocols: in each round a cohort trains in parallel, and the cloud waits for it.

Each client of the cohort is sent on one journey from the round's model. The round ends when enough updates have
arrived, when none can arrive any more, or at the deadline; the mean of those that arrived is the next round's model. A
round in which nothing arrived leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal

from simpy import Event

from fedsim.kernel.gather import Gathered, gather
from fedsim.learning.learner import Contribution, Model
from fedsim.learning.objectives import Objective
from fedsim.protocols.journey import Task, Update, journey
from fedsim.protocols.selection import CohortSettings, choose
from fedsim.protocols.world import World

__all__ = ["ParallelRounds"]


@dataclass(frozen=True)
class ParallelRounds:
    """Parallel rounds of whole models, averaged in the cloud."""

    cohort: CohortSettings
    objective: Objective
    deadline_s: float | None
    weighting: Literal["samples", "uniform"]

    def run(self, world: World) -> Generator[Event, Any, None]:
        """Rounds until the run is over."""
        model = world.learner.initial_model()
        for round_number in world.loop.rounds():
            model, counts = yield from self._round(world, model, round_number)
            world.loop.finish_round(model, **counts)

    def _round(
        self, world: World, model: Model, round_number: int
    ) -> Generator[Event, Any, tuple[Model, dict[str, int]]]:
        # A generator of its own: what it gathered is forgotten before the model is evaluated.
        chosen = yield from choose(world, self.cohort, round_number)
        task = Task(round_number, model, self.objective, world.model.bytes(), world.model.bytes())
        journeys = [world.start(client, journey(world, client, task)) for client in chosen]
        wanted = min(len(journeys), self.cohort.size(len(world.clients)))
        gathered: Gathered = yield gather(world.env, journeys, deadline_s=self.deadline_s, count=wanted)
        if world.cancel_late:
            for late in gathered.late:
                if late.is_alive:  # it may have ended since, in the very instant in which enough others had arrived
                    late.interrupt("its round is over")
            yield world.env.timeout(0)  # what is late has stopped before the round ends
        if gathered.arrived:
            yield world.env.timeout(world.cloud.aggregation_s)
            contributions = [self._contribution(update) for update in gathered.arrived]
            model = world.learner.mean(model, contributions, round_number=round_number)
        return model, {
            "selected": len(chosen),
            "participants": len(gathered.arrived),
            "lost": len(gathered.lost),
            "late": len(gathered.late),
        }

    def _contribution(self, update: Update) -> Contribution:
        return Contribution(update.client, update.model, update.samples if self.weighting == "samples" else 1.0)
