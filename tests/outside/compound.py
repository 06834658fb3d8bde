"""Compound steps at base stations, as somebody else would write them: the cloud waits for sites, and each for its own.

(FedGS: Li et al., IEEE TPDS 2022, algorithm 1, with all of a factory's devices in each step.)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

from simpy import Event

from fedsim.kernel.trip import Trip
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.update import Update
from fedsim.network.attachment import Backbone
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.site import Site
from fedsim.protocols.world import Client, World
from fedsim.settings import Count, Positive


class CompoundSteps(Protocol):
    """In each round every base station makes so many models with its own clients, and then reports up."""

    name: Literal["compound_steps"] = "compound_steps"
    steps: Count = 1
    deadline_s: Positive | None = None
    """Of a step."""
    round_deadline_s: Positive | None = None

    def run(self, world: World) -> Generator[Event, Any, None]:
        cloud, cells = Site(world), dict[Backbone, list[Client]]()
        for client in world.clients:
            cells.setdefault(client.attachment.backbone, []).append(client)
        stations = {backbone: Site(world, backbone) for backbone in cells}
        for number in world.loop.rounds():
            trips = [
                Trip(world.env, self.station(cloud, station, cells[backbone], number))
                for backbone, station in stations.items()
            ]
            got = yield from cloud.collect(trips, deadline_s=self.round_deadline_s)
            yield from cloud.fold(Mean(), got.arrived, round_number=number)
            participants = sum(update.clients for update in got.arrived)
            world.loop.finish_round(cloud.state["model"], selected=len(world.clients), participants=participants)

    def station(
        self, cloud: Site, station: Site, members: Sequence[Client], number: int
    ) -> Generator[Any, Any, Update]:
        yield from station.receive(cloud)
        for _ in range(self.steps):
            task = station.task(number, Plain(), Float32())
            trips = [station.visit(client, task) for client in members]
            got = yield from station.collect(trips, deadline_s=self.deadline_s)
            yield from station.fold(Mean(), got.arrived, round_number=number)
        return (yield from station.report_up())
