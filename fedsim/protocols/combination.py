"""A protocol is six choices, and each is a part: cohort, schedule, exchange, objective, codec and server rule.

A preset is a combination with a name and a citation; the scenario may change any of its parts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from typing import Annotated, Any, TypeVar

from simpy import Event

from fedsim import registry
from fedsim.errors import Misfit, within
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import ServerRule
from fedsim.models.features import check_that_features_are_learned
from fedsim.models.table import ModelTable
from fedsim.protocols.cohorts.cohort import Cohort
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.newcomers import NewcomersSettings
from fedsim.protocols.open_keys import open_kind, protocol_that_takes
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.schedules.schedule import Parts, Schedule
from fedsim.protocols.task import GLOBAL
from fedsim.protocols.world import World
from fedsim.settings import Component, NonNegativeInt, OneOf, Settings

__all__ = ["Combination", "picked"]

C = TypeVar("C", bound=Component)


def picked(kind: type[C], settings: Settings, **more: Any) -> C:
    """A component of *kind* whose keys stand among a preset's own *settings*."""
    shared = set(kind.model_fields) & set(type(settings).model_fields) - {"name"}
    keys = {key: getattr(settings, key) for key in shared} | more
    return kind.model_construct(None, **keys)  # type: ignore[return-value]  # they are checked already


class Combination(Protocol):
    """The keys that every combination has: how updates are written, and how they become the next model."""

    codec: Annotated[Codec, OneOf("codecs")] = Float32()
    """How updates are written on the wire."""
    server: Annotated[ServerRule, OneOf("rules")] = Mean()
    """How updates become the next model."""
    hold_back: NonNegativeInt | None = None
    """Training samples of its own that each client holds back and does not train on: at most so many, and at most a
    fifth. Left out, as many as the protocol needs: as a rule, none."""

    @abstractmethod
    def who(self) -> Cohort:
        """Who takes part."""

    @abstractmethod
    def when(self) -> Schedule:
        """Who waits for whom."""

    @abstractmethod
    def what(self) -> tuple[Exchange, Objective]:
        """What goes down and comes up, and what is minimised in between."""

    @property
    def parts(self) -> Parts:
        """All but the schedule."""
        return Parts(self.who(), *self.what(), self.codec, self.server)

    @property
    def needs_learning(self) -> bool:
        """Whether the size of an update is measured, or the protocol decides on learned values itself."""
        return self.reads_learning or bool(self.measured_size)

    @property
    def measured_size(self) -> tuple[str, ...]:
        """Of a codec or of an exchange: for updates for the cloud, or for those that clients write for others."""
        if self.codec.reads_learning:
            return ("codec", "declared_bytes")
        if of_exchange := self.parts.exchange.measured_size:
            return (*self._key("exchange"), *of_exchange)
        measures = self.when().client_codec(self.codec).reads_learning
        return (*self._key("schedule"), "inner_codec", "declared_bytes") if measures else ()

    @property
    def declared_size(self) -> tuple[str, ...]:
        """The key that declares the size of an update, where it is given and could be measured; else empty."""
        if self.codec.measured and self.codec.declared_bytes is not None:
            return ("codec", "declared_bytes")
        if of_exchange := self.parts.exchange.declared_size:
            return (*self._key("exchange"), *of_exchange)
        inner = self.when().client_codec(self.codec)
        declares = inner is not self.codec and inner.measured and inner.declared_bytes is not None
        return (*self._key("schedule"), "inner_codec", "declared_bytes") if declares else ()

    @property
    def held_back(self) -> int:
        """As the scenario says, or as its exchange needs it."""
        return self.parts.exchange.held_back if self.hold_back is None else self.hold_back

    @property
    def learning_rates(self) -> tuple[str, ...]:
        """Its server rule's own, if it has one, and that of local training."""
        own = ["server.learning_rate"] if "learning_rate" in type(self.server).model_fields else []
        return (*own, *super().learning_rates)

    @property
    def trains_alone(self) -> bool:
        """As its objective does."""
        return self.parts.objective.trains_alone

    def models(self, table: ModelTable, clients: Sequence[ModelTable]) -> tuple[ModelTable, ...]:
        """One, as its objective and its exchange have it."""
        exchange, objective = self.what()
        with within(*self._key("objective")):
            adapted = objective.adapted(table)
        return (exchange.adapted(adapted, clients),)

    def run(self, world: World) -> Generator[Event, Any, None]:
        """As its schedule has it, with its parts."""
        yield from self.when().run(world, self.parts)

    def check(self, world: World) -> None:
        """Every client needs a compute time, and each part what it needs."""
        super().check(world)
        cohort, exchange, objective, codec, server = parts = self.parts
        schedule = self.when()
        other = next((client for client in world.clients if client.model is not world.model), None)
        if other is not None and not exchange.several_models:
            problem = f"makes one model for all, and {other.name!r} has another"
            raise Misfit(f"{problem}; leave model out of its device class")
        theirs = schedule.client_codec(codec)
        if both := sorted({*objective.remembers} & {*theirs.remembers}):
            key = ("codec",) if theirs is codec else (*self._key("schedule"), "inner_codec")
            raise Misfit(f"objective {objective.name!r} and codec {theirs.name!r} both remember {both[0]!r}", *key)
        self._check_what_travels_beside()
        with within(*self._key("cohort")):
            cohort.check_schedule(schedule.station_size(world))
            cohort.check(world)
        with within(*self._key("schedule")):
            schedule.check(world)
        with within(*self._key("objective")):
            objective.check(world.dataset)
            if objective.features:
                check_that_features_are_learned(world.model)
        with within(*self._key("exchange")):
            exchange.check(world)
            if exchange.selects and cohort.in_sequence:
                problem = "filters are chosen from what one client has trained, and in a group several train"
                raise Misfit(f"{problem}; {self._way('cohort', ['random'])}")
            if exchange.several_models and cohort.in_sequence:
                problem = f"with exchange {exchange.name!r} each client trains its own model, and in a group one model"
                raise Misfit(f"{problem} is trained in sequence; {self._way('cohort', ['random'])}")
            if schedule.at_stations and (exchange.keeps_parts or exchange.several_models):
                problem = f"exchange {exchange.name!r} leaves a part of the model with each client"
                raise Misfit(f"{problem}, and stations report all of it; {self._way('exchange', ['whole'])}")
        if exchange.held_back and self.hold_back not in (None, exchange.held_back):
            problem = f"{self.hold_back}, and the selection has clients hold back {exchange.held_back} samples"
            raise Misfit(f"{problem}, as its own keys say; leave it out", "hold_back")
        exchange.check_beside(objective, theirs)
        if objective.rebuilt and not theirs.exact:
            problem = f"objective {objective.name!r} has the server work out {objective.rebuilt[0]!r} from the update"
            raise Misfit(
                f"{problem}, and codec {theirs.name!r} changes that; write change: sent", *self._key("objective")
            )
        with within("server"):
            server.check(world.model)
        exchange.check_rule(server, world)
        with within(*self._key("schedule")):
            schedule.check_beside(world, parts)

    def check_newcomers(self, world: World, newcomers: NewcomersSettings) -> None:
        """All must have one model, and the cloud must say whom it asks."""
        several = self.parts.exchange.several_models
        newcomers.check(world, several_models=several, at_stations=self.when().at_stations)

    def check_tests(self, world: World, on: Sequence[str]) -> None:
        """As its exchange has it."""
        with within(*self._key("exchange")):
            self.parts.exchange.check_tests(world, on)

    def _check_what_travels_beside(self) -> None:
        """What the objective receives, the server must have, and what the rule needs, the objective must send."""
        cohort, exchange, objective, _, server = self.parts
        beside, schedule = (*objective.sends, *objective.tells), self.when()
        if cohort.in_sequence:
            why = "in a group that trains in sequence only the last client's would arrive"
            self._check_that_nothing_goes_beside(objective, server, why, "cohort", "random")
        if schedule.at_stations:
            why = "a base station reports its model alone"
            self._check_that_nothing_goes_beside(objective, server, why, "schedule", "rounds")
            if server.looks_at:
                problem = f"server rule {server.name!r} looks at {server.looks_at[0]!r} of each client"
                raise Misfit(f"{problem}, and {why}; choose denominator: clients", "server")
        received = [name for name in objective.receives if name != GLOBAL]
        if lacking := [name for name in received if name not in server.provides]:
            problem = f"objective {objective.name!r} receives {lacking[0]!r}, and server rule {server.name!r} has none"
            raise Misfit(f"{problem}; {self._way('server', _rules_for(objective, lacking[0]))}", "server")
        if lacking := [name for name in server.needs if name not in beside]:
            problem = f"server rule {server.name!r} needs {lacking[0]!r} of each client"
            way = self._way("objective", _objectives_for(server, lacking[0]))
            raise Misfit(f"{problem}, and objective {objective.name!r} sends none; {way}", "server")
        if received and objective.part != server.part:
            problem = f"objective {objective.name!r} is about {_about(objective.part)}"
            theirs = f"server rule {server.name!r} about {_about(server.part)}"
            way = self._way("server", _rules_for(objective, received[0]))
            raise Misfit(f"{problem}, and {theirs}; {way}", "server")
        interval = schedule.block_length()
        if objective.tells and not exchange.always_trains(interval):
            problem = f"objective {objective.name!r} tells {objective.tells[0]!r} of each training"
            where = f"with these keys of exchange {exchange.name!r} some clients send without training"
            ways = "choose scc: {without_history: calibrate}, or exchange: {name: whole}"
            raise Misfit(f"{problem}, and {where}; {ways}", *self._key("exchange"))
        if objective.sends and not exchange.always_sends(objective.part, interval):
            problem = f"objective {objective.name!r} goes by the gradients of {_about(objective.part)}"
            where = f"with exchange {exchange.name!r} not all of it is trained and sent in each round"
            raise Misfit(f"{problem}, and {where}; {self._way('exchange', ['whole'])}", *self._key("exchange"))

    def _check_that_nothing_goes_beside(
        self, objective: Objective, server: ServerRule, why: str, part: str, name: str
    ) -> None:
        """Groups that train in sequence, and stations, send a model and nothing else; *why* says so.

        The way out is *name* as a *part*.
        """
        if sent := (*objective.sends, *objective.tells):
            problem, key = f"objective {objective.name!r} sends {sent[0]!r} beside the model", self._key("objective")
        elif server.needs:
            problem, key = f"server rule {server.name!r} needs {server.needs[0]!r} of each client", ("server",)
        else:
            return
        other = "use a protocol whose clients train in parallel, such as fedavg"
        if part == "schedule":
            other = "use a protocol whose clients answer to the cloud, such as fedavg"
        way = f"choose {part}: {{name: {name}}}" if open_kind(type(self), part) else other
        raise Misfit(f"{problem}, and {why}; {way}", *key)

    def _way(self, part: str, names: Sequence[str]) -> str:
        """The way out where one of these *names* is needed as a *part*, which the protocol may not leave open."""
        if not names:  # what needs it is no part of fedsim
            return "choose another one"
        ways = " or ".join(f"{{name: {name}}}" for name in names)
        if open_kind(type(self), part):
            return f"choose {part}: {ways}"
        others = dict.fromkeys((str(protocol_that_takes(part, names[0])), "composed"))
        return f"use {' or '.join(others)}, with {part}: {ways}"

    @property
    def cohort_key(self) -> tuple[str, ...]:
        """Where the keys of the cohort stand."""
        return self._key("cohort")

    def _key(self, part: str) -> tuple[str, ...]:
        """Where the keys of *part* stand: under its own, or among the preset's."""
        return (part,) if part in type(self).model_fields else ()

    def columns(self, world: World) -> dict[str, float]:
        """Those of the exchange."""
        return self.parts.exchange.columns(world)

    @property
    def times_finetuning(self) -> bool:
        """As its schedule does."""
        return self.when().times_finetuning

    @property
    def rounds_are_alike(self) -> bool:
        """Not where groups grow in number, nor where a block has a round of another kind."""
        cohort, exchange, *_ = self.parts
        schedule = self.when()
        one_kind = schedule.at_stations or schedule.block_length() == 1
        return cohort.steady and (one_kind or isinstance(exchange, Whole))


def _about(part: str | None) -> str:
    return f"the {part}" if part else "the whole model"


def _rules_for(objective: Objective, name: str) -> list[str]:
    """The registered rules that provide *name* of what *objective* is about."""
    rules = {known: registry.load("rules", known) for known in registry.names("rules")}
    return [known for known, rule in rules.items() if name in rule.provides and rule.part == objective.part]


def _objectives_for(rule: ServerRule, name: str) -> list[str]:
    """The registered objectives that send or tell *name* of what *rule* is about."""
    objectives = {known: registry.load("objectives", known) for known in registry.names("objectives")}
    return [known for known, one in objectives.items() if name in (*one.sends, *one.tells) and one.part == rule.part]
