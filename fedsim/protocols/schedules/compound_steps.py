"""Compound-step synchronisation (FedGS: Li et al., IEEE Internet of Things Journal 2022, section IV and algorithm 1).

In each of T iterations of a round the devices of a station make one step of SGD, each on its next mini-batch, and the
station averages their models (Eqs. 3 and 4): that is one step on all these mini-batches. Then the cloud averages the
stations' models (Eq. 5).

As nobody asks for a station's model in mid-round, its T iterations are one training with T large mini-batches. `fused:
false` trains device by device, which takes longer and yields the same, but for rounding.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

from simpy import Event

from fedsim.data.captures import Capture
from fedsim.data.dataset import POOL
from fedsim.data.stream.settings import StreamSettings
from fedsim.devices.stream_buffer import MiniBatchBuffer
from fedsim.errors import Misfit
from fedsim.learning.learner import LocalTraining
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.mean import Mean
from fedsim.models.samples_alone import why_not_alone
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.schedules.schedule import Parts
from fedsim.protocols.schedules.stations import Station, Stations, StationsSettings
from fedsim.protocols.single_step import SingleStep, joint_step
from fedsim.protocols.task import GLOBAL
from fedsim.protocols.world import Client, World
from fedsim.settings import Count

__all__ = ["CompoundSteps", "CompoundStepsSettings"]


class CompoundStepsSettings(StationsSettings):
    """The keys of compound steps."""

    iterations: Count = 50
    """T: internal synchronisations in a round, one step each."""
    fused: bool = True
    """Whether the T iterations of a station are computed as one training on the mini-batches of all its devices; false:
    each device's step is a training of its own, which takes longer, and allows what is no plain SGD."""


class CompoundSteps(Stations, CompoundStepsSettings):
    """Single steps at base stations, T times, and then an average of the stations' models in the cloud."""

    name: Literal["compound_steps"] = "compound_steps"

    @property
    def most_iterations(self) -> int:
        """T."""
        return self.iterations

    def check(self, world: World) -> None:
        """A step is one mini-batch of fresh samples."""
        super().check(world)
        training, stream = world.training, world.dataset.stream
        if training.epochs != 1:
            problem = f"training.epochs={training.epochs}, and a single step is one mini-batch, seen once"
            raise Misfit(f"{problem}; give this protocol training: {{..., epochs: 1}}")
        if training.momentum:
            problem = f"training.momentum={training.momentum:g} has no effect, as each single step begins without any"
            raise Misfit(f"{problem}; give this protocol training: {{..., momentum: 0.0}}")
        if world.dataset.held_back:
            problem = f"{world.dataset.held_back} samples are held back, and single steps draw from all of a device's"
            raise Misfit(f"{problem}; leave hold_back out")
        if training.batch_size > (samples := int(world.dataset.client_samples.sum())):
            problem = f"training.batch_size={training.batch_size:,} samples in the mini-batch of one device"
            raise Misfit(f"{problem}, and all devices together have {samples:,}; write a smaller one")
        if stream is not None and stream.refresh_rounds != 1:
            problem = f"data.stream.refresh_rounds={stream.refresh_rounds} keeps samples for several trainings"
            raise Misfit(f"{problem}, and here each step uses up its mini-batch; leave it out")
        if stream is not None and stream.arrival and stream.arrival.buffer_samples < training.batch_size:
            problem = f"training.batch_size={training.batch_size} do not fit into data.stream.arrival.buffer_samples"
            raise Misfit(f"{problem}={stream.arrival.buffer_samples}; enlarge the buffer")

    def check_beside(self, world: World, parts: Parts) -> None:
        """Single steps add up to one step on all mini-batches by plain SGD only."""
        objective = parts.objective
        if objective.pull or (GLOBAL in objective.receives and not objective.fuses):
            problem = f"objective {objective.name!r} looks at where a training began"
            raise Misfit(f"{problem}, and each single step begins there, so that it has no effect; leave it out")
        if not self.fused:
            return
        reasons = [
            f"objective {parts.objective.name!r}" if not isinstance(parts.objective, Plain) else None,
            f"exchange {parts.exchange.name!r}" if not isinstance(parts.exchange, Whole) else None,
            f"inner_codec {self.inner_codec.name!r}" if not self.inner_codec.exact else None,
            why_not_alone(world.model),
        ]
        if why := next(filter(None, reasons), None):
            problem = "the steps of a station's devices are computed as one step on all their mini-batches"
            raise Misfit(f"{problem}, which holds for plain SGD, and not here: {why}; choose fused: false", "fused")

    def begin(self, world: World) -> None:
        """Each device goes through its samples mini-batch by mini-batch."""
        size = world.training.batch_size
        stream = world.dataset.stream
        settings = StreamSettings(samples=size) if stream is None else stream.model_copy(update={"samples": size})
        for client in world.clients:
            client.stream = MiniBatchBuffer(settings)

    def iteration(
        self, station: Station, parts: Parts, at: BlockRound, clients: Sequence[Client]
    ) -> Generator[Event, Any, None]:
        """Each of *clients* makes one step; the station takes the mean of their models (Eqs. 3 and 4)."""
        site = station.site
        if self.fused:
            captures: dict[int, Capture] = {}
            task = site.task(at.number, parts.objective, self.inner_codec, kind=SingleStep, captures=captures)
        else:
            task = parts.exchange.task(site, at, parts.objective, self.inner_codec)
        updates = yield from self.collected(station, clients, task)
        yield from site.fold(None if self.fused else Mean(), updates, round_number=at.number)
        if self.fused and updates:
            station.steps.append(joint_step(updates, captures))
        station.samples += sum(update.samples for update in updates)

    def result(self, station: Station, at: BlockRound) -> int:
        """All steps of the round, as one training of the model that came from the cloud."""
        site = station.site
        if station.steps and site.state["model"]:
            task = LocalTraining(
                at.number, POOL, at.number, Plain(), table=site.table.digest, epochs=1, steps=tuple(station.steps)
            )
            trained = site.world.learner.train(task, site.state["model"], state={}, further={})
            site.state = {**site.state, "model": trained.model}
        return station.samples
