"""What a schedule is: the loop of a protocol, over whatever parts it is combined with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from typing import Any, ClassVar, NamedTuple

from simpy import Event

from fedsim.learning.codecs.codec import Codec
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.rule import ServerRule
from fedsim.protocols.cohorts.cohort import Cohort
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.world import World
from fedsim.settings import Component

__all__ = ["Parts", "Schedule"]


class Parts(NamedTuple):
    """What a protocol is combined of, beside its schedule."""

    cohort: Cohort
    """Who takes part."""
    exchange: Exchange
    """What goes down, what is done with it, and what comes up."""
    objective: Objective
    """What clients minimise."""
    codec: Codec
    """How updates are written on the wire."""
    server: ServerRule
    """How updates become the next model."""


class Schedule(Component):
    """Registered under "schedules"."""

    times_finetuning: ClassVar[bool] = False
    """Whether its rounds include the fine-tuning before an evaluation (`fedsim.protocols.finetuning`)."""
    at_stations: ClassVar[bool] = False
    """Whether clients answer to base stations, which report a model, and nothing beside it, to the cloud."""

    def client_codec(self, codec: Codec) -> Codec:
        """How clients write their updates, where *codec* is how updates for the cloud are written."""
        return codec

    def block_length(self) -> int:
        """To an exchange: how many rounds there are in a block, which begins with an exchange of the whole model."""
        return 1

    def station_size(self, world: World) -> int | None:
        """The most clients that one of its stations may come to have; None where the cloud asks them."""
        return None

    def check(self, world: World) -> None:
        """Raise `UserError` when it cannot run in *world*."""
        return

    def check_beside(self, world: World, parts: Parts) -> None:
        """Raise `Misfit` when it does not go together with other *parts*."""
        return

    @abstractmethod
    def run(self, world: World, parts: Parts) -> Generator[Event, Any, None]:
        """The protocol as a process: a loop over ``world.loop.rounds()``."""
