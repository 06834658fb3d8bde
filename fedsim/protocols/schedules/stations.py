"""A schedule in two levels: the cloud waits for base stations, and each of these, again and again, for its own clients.

::

    cloud -> station                                          the cloud's model
             station -> sensors -> station   T times, by air  train, and the mean is the station's next model
    cloud <- station                                          the station's model

(Hierarchical federated averaging: Liu et al., *Client-edge-cloud hierarchical federated learning*, ICC 2020. FedGS: Li
et al., IEEE Internet of Things Journal 2022, algorithm 1.) Stations work side by side. A client belongs to the station
that it is attached to, or to the one that it has moved to: then its messages go by its own cell and the wires between
the two stations. An iteration in which nobody answers in time leaves the station's model as it was. A station none of
whose clients can ever be reached again reports what it has. A station reports nothing if no client
has trained there in the round.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from simpy import Event

from fedsim.errors import Misfit
from fedsim.kernel.gather import Gathered, Journey, at_the_end_of
from fedsim.kernel.trip import Lost, Trip
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.joint_steps import JointStep
from fedsim.learning.rules.update import Update
from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.cohort import Draw
from fedsim.protocols.finetuning import fine_tune
from fedsim.protocols.schedules.membership import Membership
from fedsim.protocols.schedules.schedule import Parts, Schedule
from fedsim.protocols.schedules.station_reports import StationReports
from fedsim.protocols.site import RoundGate, Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World
from fedsim.settings import OneOf, Positive, Probability, Settings

__all__ = ["Station", "Stations", "StationsSettings"]


class StationsSettings(Settings):
    """The keys that all schedules with stations have."""

    deadline_s: Positive | None = None
    """A round ends at the latest after so many seconds: the cloud waits for its stations no longer."""
    iteration_deadline_s: Positive | None = None
    """A station waits no longer for its clients, nor before for what they report of their data, in an iteration."""
    weighting: Literal["samples", "uniform"] = "samples"
    """Weights of the stations' models: by the samples that they were trained on, or all equal."""
    inner_codec: Annotated[Codec, OneOf("codecs")] = Float32()
    """How clients write their updates for their station; ``codec`` is how stations write theirs for the cloud."""
    move_share: Probability = 0.0
    """Share of the clients, drawn anew when a round begins, that move to another station, each drawn at random."""


@dataclass
class Station:
    """One base station in one round."""

    number: int
    site: Site
    members: Sequence[Client]
    asked: set[int] = field(default_factory=set)
    """The clients that have been asked."""
    steps: list[JointStep] = field(default_factory=list)
    """What its clients have done in single steps that are computed together."""
    samples: int = 0
    """Of all its clients' single steps."""

    @property
    def closed_by(self) -> int:
        """Whom it has waited for last."""
        return self.site.closed_by


class Stations(Schedule, StationsSettings):
    """Base of schedules with stations: they say how often, and what becomes of an iteration."""

    at_stations: ClassVar[bool] = True
    times_finetuning: ClassVar[bool] = True

    @property
    @abstractmethod
    def most_iterations(self) -> int:
        """T: in a round, at each station."""

    def client_codec(self, codec: Codec) -> Codec:
        """Theirs is another."""
        return self.inner_codec

    def block_length(self) -> int:
        """To an exchange, the iterations of a round are the rounds of a block."""
        return self.most_iterations

    def station_size(self, world: World) -> int:
        """As many as it is attached to; where clients move, all of them may come together."""
        return len(world.clients) if self.move_share else Membership(world, 0.0).largest

    def begin(self, world: World) -> None:
        """A run begins: clients get ready for it."""
        return

    @abstractmethod
    def iteration(
        self, station: Station, parts: Parts, at: BlockRound, clients: Sequence[Client]
    ) -> Generator[Event, Any, None]:
        """*clients* are asked, and the station makes its next model of what they answer."""

    def result(self, station: Station, at: BlockRound) -> int | None:
        """The station has its last model of the round; how many samples that counts for (None: as its clients hold)."""
        return None

    def check(self, world: World) -> None:
        """A share of the clients that moves is one client at least, and has somewhere to go."""
        super().check(world)
        if not self.move_share:
            return
        membership = Membership(world, self.move_share)
        if len(membership.backbones) == 1:
            problem = "clients move between base stations, and only one has clients of its own"
            raise Misfit(f"{problem}; give clients to another one, or leave move_share out", "move_share")
        if not membership.moves:
            moving = f"{self.move_share:g} of {len(world.clients)} clients at stations"
            raise Misfit(f"{moving} moves nobody; give a larger share, or leave it out", "move_share")

    def run(self, world: World, parts: Parts) -> Generator[Event, Any, None]:
        """Rounds until the run is over."""
        self.begin(world)
        cloud, draw = Site(world, rule=parts.server), parts.cohort.begin(self.deadline_s)
        membership, reports = Membership(world, self.move_share), StationReports(world, parts.codec)
        for round_number in world.loop.rounds():
            at = BlockRound(round_number, round_number, 0, self.most_iterations)
            groups = yield from draw.groups(world, at)
            homes = membership.of_round(round_number, [client for group in groups for client in group])
            stations = [
                Station(number, Site(world, membership.backbones[number], {"model": cloud.state["model"]}), members)
                for number, members in homes.items()
            ]
            counts = yield from self._round(cloud, stations, parts, draw, reports, at)
            yield from fine_tune(cloud, parts.exchange, round_number, self.deadline_s)
            world.loop.finish_round(cloud.state["model"], **counts)

    def _round(
        self,
        cloud: Site,
        stations: Sequence[Station],
        parts: Parts,
        draw: Draw,
        reports: StationReports,
        at: BlockRound,
    ) -> Generator[Event, Any, dict[str, int]]:
        gate = RoundGate()
        trips: dict[Journey, Station] = {
            Trip(cloud.world.env, self._at_station(cloud, station, parts, draw, reports, at, gate), of=station): station
            for station in stations
        }
        gathered = yield from cloud.collect(list(trips), deadline_s=self.deadline_s, gate=gate)
        updates = gathered.arrived
        if self.weighting == "uniform":
            updates = [update._replace(weight=1.0) for update in updates]
        yield from cloud.fold(parts.server, updates, round_number=at.number)
        selected = sum(len(station.asked) for station in stations)
        participants = sum(update.clients for update in updates)
        late = sum(len(trips[trip].asked) for trip in gathered.late)
        return {
            "selected": selected,
            "participants": participants,
            "lost": selected - participants - late,
            "late": late,
        }

    def _at_station(
        self,
        cloud: Site,
        station: Station,
        parts: Parts,
        draw: Draw,
        reports: StationReports,
        at: BlockRound,
        gate: RoundGate,
    ) -> Generator[Any, Any, Update]:
        """A round at one station. Raises `Lost` when it has nothing to report in time."""
        site = station.site
        yield from site.receive(cloud)
        for number in range(self.most_iterations):
            here = at._replace(offset=number)
            there = yield from _who_can_begin(site, self._fit(station, parts, here))
            if not gate.open:
                raise Lost("its round is over")
            if not there:
                break
            clients = yield from draw.at_station(site, station.number, there, here, self.iteration_deadline_s)
            if not gate.open:
                raise Lost("its round is over")
            station.asked.update(client.index for client in clients)
            yield from self.iteration(station, parts, here, clients)
            yield from parts.exchange.spread(site, here, clients, self.iteration_deadline_s)
        samples = self.result(station, at)
        return (yield from reports.sent(station.site, station.number, at.number, samples))

    def _fit(self, station: Station, parts: Parts, at: BlockRound) -> Sequence[Client]:
        """The members who have what the iteration needs beside what is sent: nobody else can be selected."""
        if parts.exchange.is_whole(at.interval):
            return station.members  # it needs nothing else
        task = parts.exchange.task(station.site, at, parts.objective, self.inner_codec)
        return [client for client in station.members if task.suits(client)]

    def collected(self, station: Station, clients: Sequence[Client], task: Task) -> Generator[Event, Any, list[Update]]:
        """What *clients* make of *task*, as far as it comes in time."""
        trips = [station.site.visit(client, task) for client in clients]
        gathered: Gathered = yield from station.site.collect(trips, deadline_s=self.iteration_deadline_s)
        return gathered.arrived


def _who_can_begin(site: Site, members: Sequence[Client]) -> Generator[Event, Any, list[Client]]:
    """Those whom *site* reaches and who are free; waits until there are some, but not without hope."""
    world = site.world
    yield at_the_end_of(world.env, 0.0)  # who is freed in this instant is free
    while not (there := [client for client in members if site.reaches(client) and not client.busy]):
        if not any(client.busy or not world.outages.fate(client.attachment, site.backbone) for client in members):
            break
        yield from world.until_changed(site.backbone)
        yield at_the_end_of(world.env, 0.0)
    return there
