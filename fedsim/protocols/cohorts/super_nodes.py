"""Super nodes: at each base station, for each iteration, devices whose mini-batches together look like all data.

(FedGS: Li et al., IEEE Internet of Things Journal 2022, section V.) Of a station's devices some are *pre-sampled* at
random, so that each has a chance. A selector chooses the others, such that all these mini-batches together have the
classes of the whole federation, as nearly as it can. For this, devices report how many samples of each class their next
mini-batch has. Reports are counted on the air, and take time there; how long a station thinks is a number in the
scenario.

What all data look like, the cloud learns once, in the first round, from what each device reports of all its samples
(Eq. 2). A device whose report is lost reports again in the next round.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from simpy import Event

from fedsim.data.captures import classes_seen
from fedsim.data.class_counts import ClassCounts
from fedsim.errors import Misfit, within
from fedsim.grouping.subset.gbp_cs import GBPCS
from fedsim.grouping.subset.selector import SubsetSelector
from fedsim.kernel.gather import give_up
from fedsim.kernel.trace import Pause
from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.cohort import Cohort, Draw, Group
from fedsim.protocols.cohorts.label_reports import (
    BYTES_PER_COUNT,
    Counts,
    check_that_there_are_classes,
    next_capture,
    report_to_cloud,
    reports_to_station,
)
from fedsim.protocols.cohorts.random import eligible_clients
from fedsim.protocols.site import Site
from fedsim.protocols.world import Client, World
from fedsim.settings import Count, NonNegative, NonNegativeInt, OneOf, Settings, key_rule

__all__ = ["SuperNodes", "SuperNodesSettings"]

ROUNDING = 1e-9
"""Of a time, relative: an arrival in this very instant counts."""


class SuperNodesSettings(Settings):
    """The keys of super nodes."""

    devices: Count = 10
    """L: devices of each base station that take part in an iteration; all of them where it has fewer."""
    presampled: NonNegativeInt = 2
    """L_rnd: how many of these are drawn at random, before the others are selected."""
    selector: Annotated[SubsetSelector, OneOf("subsets")] = Field(default_factory=GBPCS)
    """How the others are selected."""
    selection_s: NonNegative = 0.0
    """Simulated seconds that a base station takes to select devices; FedGS reports 0.015."""
    label_reports: Literal["together", "singly"] = "together"
    """Whether what the devices of a cell report for an iteration is one message, with all their bytes and airtime, or
    each report is a message of its own. It is the latter in any case where packets can be lost, where the cell has
    several carriers, and with an iteration_deadline_s, which some reports may miss."""

    @property
    def goes_by_counts(self) -> bool:
        """Whether somebody is selected, and by class counts."""
        return self.selector.needs_counts and self.presampled < self.devices

    @key_rule
    def _some_are_selected(self) -> None:
        if self.presampled > self.devices:
            written = "" if "presampled" in self.model_fields_set else " (its default)"
            problem = f"presampled={self.presampled}{written} must be at most devices={self.devices}"
            raise Misfit(f"{problem}; give a smaller one, or more devices", "presampled")


class SuperNodes(Cohort, SuperNodesSettings):
    """At each base station, for each iteration, devices whose mini-batches together look like all data."""

    name: Literal["super_nodes"] = "super_nodes"

    def begin(self, deadline_s: float | None) -> Draw:
        """Nothing is known of the devices' data yet."""
        return _SuperNodesDraw(self, deadline_s)

    def check(self, world: World) -> None:
        """A selector may need class counts."""
        if self.goes_by_counts:
            what = f"selector {self.selector.name!r}"
            check_that_there_are_classes(
                world, what, "choose another data set, or selector: {name: random}", "selector"
            )

    def check_schedule(self, station_size: int | None) -> None:
        """It is for base stations, with no more devices than the selector can choose from."""
        if station_size is None:
            problem = "super nodes are selected by base stations"
            raise Misfit(f"{problem}; choose schedule: {{name: compound_steps}}, or {{name: edge_rounds}}")
        if station_size > self.devices:
            with within("selector"):
                self.selector.check(station_size - self.presampled, self.devices - self.presampled)

    def mean_size(self, clients: int) -> float:
        """All may take part."""
        return float(clients)

    def messages_at_stations(self, clients: int, stations: int) -> tuple[float, float]:
        """L devices of each; where they are selected by counts, each client reports, or all of a station together."""
        reports = stations if self.label_reports == "together" else clients
        return min(self.devices * stations, clients), reports if self.goes_by_counts else 0.0


@dataclass
class _SuperNodesDraw(Draw):
    settings: SuperNodes
    deadline_s: float | None
    """How long the cloud waits for reports at most."""
    _held: dict[int, Counts] = field(default_factory=dict)
    """Of all samples of each client that has told so."""
    _goal: npt.NDArray[np.float64] | None = None
    """P_real, (classes,): the share of each class in all data."""
    _counting: ClassCounts | None = None

    def groups(self, world: World, at: BlockRound) -> Generator[Event, Any, list[Group]]:
        """All clients, as soon as one of them can be reached and is free; the cloud learns of their data."""
        eligible = yield from eligible_clients(world)
        if self.settings.goes_by_counts:
            yield from self._learn_of(world, [client for client in eligible if client.index not in self._held])
        return [(client,) for client in world.clients]

    def at_station(
        self, site: Site, station: int, members: Sequence[Client], at: BlockRound, deadline_s: float | None
    ) -> Generator[Event, Any, Sequence[Client]]:
        """Some drawn, the others selected, in the order of clients."""
        settings, world = self.settings, site.world
        members = yield from _with_a_mini_batch(site, members, at)
        if settings.goes_by_counts:
            members = yield from self._reported(site, members, deadline_s)
        if not members:
            return []
        if settings.selection_s:
            yield from world.pause(Pause.SERVER, settings.selection_s, site.backbone)
        rng = world.streams(f"selection/station/{station}", at.offset, at.number).generator()
        order = rng.permutation(len(members)).tolist()
        drawn, others = order[: settings.presampled], sorted(order[settings.presampled :])
        return [members[number] for number in sorted([*drawn, *self._selected(site, members, drawn, others, at, rng)])]

    def _selected(
        self,
        site: Site,
        members: Sequence[Client],
        drawn: Sequence[int],
        others: Sequence[int],
        at: BlockRound,
        rng: np.random.Generator,
    ) -> list[int]:
        """Those of *others* whose class counts bring the sum nearest to ``y = n L P_real - b`` (Eqs. 11 to 13)."""
        settings = self.settings
        size = settings.devices - len(drawn)
        counts: npt.NDArray[Any]
        if not settings.goes_by_counts:
            counts, wanted = np.zeros((len(others), 1)), np.zeros(1)
        elif self._goal is None:  # nobody has told anything
            return []
        else:
            rows = self._next_counts(site.world, members, at)
            counts = rows[others]
            samples = rows.sum() / len(members) * min(settings.devices, len(members))
            wanted = samples * self._goal - rows[drawn].sum(axis=0)
        chosen = settings.selector.choose(counts, wanted, size, rng)
        return [others[number] for number in chosen]

    def _reported(
        self, site: Site, members: Sequence[Client], deadline_s: float | None
    ) -> Generator[Event, Any, Sequence[Client]]:
        """Those of *members* who have told the station the classes of their next mini-batch."""
        assert site.world.dataset.counted_classes is not None
        size_bytes = float(BYTES_PER_COUNT * site.world.dataset.counted_classes)
        together = self.settings.label_reports == "together" and deadline_s is None
        trips = reports_to_station(site, members, size_bytes, together=together)
        gathered = yield from site.world.gather(trips, deadline_s=deadline_s, at=site.backbone)
        give_up(gathered.late, "the devices are selected")
        return sorted((client for some in gathered.arrived for client in some), key=lambda client: client.index)

    def _next_counts(self, world: World, members: Sequence[Client], at: BlockRound) -> Counts:
        """(members, classes) the class counts of what they would train on next."""
        if self._counting is None:
            self._counting = ClassCounts(world.dataset, world.streams)
        return self._counting.rows([(client.index, next_capture(world, client, at.number)) for client in members])

    def _learn_of(self, world: World, clients: Sequence[Client]) -> Generator[Event, Any, None]:
        """The cloud asks *clients* what they hold, and works out the share of each class (Eq. 2)."""
        trips = [
            world.start(
                client, report_to_cloud(world, client, classes_seen(world.dataset, client.index, None, world.streams))
            )
            for client in clients
        ]
        gathered = yield from world.gather(trips, deadline_s=self.deadline_s)
        give_up(gathered.late, "the round begins")
        if gathered.arrived:
            self._held |= gathered.arrived
            total = np.sum([self._held[index] for index in sorted(self._held)], axis=0)
            self._goal = total / total.sum()


def _with_a_mini_batch(
    site: Site, members: Sequence[Client], at: BlockRound
) -> Generator[Event, Any, Sequence[Client]]:
    """Those of *members* whose next mini-batch has arrived; waits until there is one."""
    world = site.world
    stream = world.dataset.stream
    if stream is None or (stream.arrival is None and stream.drift is None):
        return members  # it is there, and the same whenever it is captured
    while True:
        now_s, soonest_s, ready = world.env.now, math.inf, []
        for client in members:
            wait_s = 0.0
            if client.stream is not None:
                wait_s = client.stream.wait_s(client.stream.capture(now_s, at.number), now_s)
            if wait_s <= ROUNDING * (1 + now_s):
                ready.append(client)
            soonest_s = min(soonest_s, wait_s)
        if ready or not members:
            return ready
        yield from world.pause(Pause.SAMPLES, soonest_s, site.backbone)
