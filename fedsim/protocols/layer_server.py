"""A server that has no model, but a mean of each group of layers that some clients' models have in common."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from simpy import Event

from fedsim.data.captures import Capture
from fedsim.kernel.trace import Pause
from fedsim.learning.learner import Model, Trained
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.changes import weighted_change
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update
from fedsim.models.segmented import SegmentedTable
from fedsim.models.table import ModelTable
from fedsim.protocols.message import Message
from fedsim.protocols.sharing import CommonSettings, Group, Sharing
from fedsim.protocols.site import Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World

__all__ = ["LayerServer", "LayerTask"]

KEPT = "private"
"""Under which a client keeps its own model, by segment."""


class LayerServer(Site):
    """The cloud. What a client has is kept with the client; the server knows what it has not been sent yet."""

    def __init__(
        self,
        world: World,
        rule: ServerRule,
        settings: CommonSettings,
        sharing: Callable[[Sequence[ModelTable]], Sharing],
    ) -> None:
        """*sharing* tells what is common to clients whose models it is given."""
        super().__init__(world, state={"model": {}})
        self._settings, self._how, self._server_rule = settings, sharing, rule
        self.sharing = self._shared_by(world.clients)
        """What is common now."""
        tables = self.sharing.tables
        self._first: dict[str, ModelTable] = {}
        """By the path of a segment: the first table that has it."""
        for table in tables:
            for path in _paths(table).values():
                self._first.setdefault(path, table)
        self._means: dict[Group, State] = {}
        self._averaged: set[Group] = set()
        self._to_deliver: dict[int, set[str]] = {}
        world.initial_model = self._initial_model
        self._learns = bool(self._initial_model(world.clients[0]))
        if settings.init == "common" and settings.common == "run":
            self._averaged |= set(self.sharing.groups)
            if self._learns:
                self._means = {group: self._begun(group) for group in self.sharing.groups}
        self._note_model_of_all()

    def _shared_by(self, clients: Sequence[Client]) -> Sharing:
        return self._how([client.model for client in clients])

    def _begun(self, group: Group) -> State:
        table = self.sharing.first_table(group)
        model = self._start_of(table, 0)
        state = {"model": {segment: model[segment] for segment in group.segments}}
        return self._server_rule.begin(self.world.learner, state, table)

    # -- what a client begins with -----------------------------------------------------------------------------------

    def _initial_model(self, client: Client) -> Model:
        own = self._settings.init == "own"
        return self._start_of(client.model, client.index if own else 0)

    def _start_of(self, table: ModelTable, stream: int) -> Model:
        """Where a model starts: what it has in common with another one is what the first of them starts with."""
        learner = self.world.learner
        if not isinstance(table, SegmentedTable) or self._settings.init == "own":
            return learner.initial_model(table, stream)
        first = {segment: self._first.get(path, table) for segment, path in _paths(table).items()}
        models = {one.digest: learner.initial_model(one, stream) for one in first.values()}
        return {segment: models[one.digest][segment] for segment, one in first.items() if models[one.digest]}

    def keep(self, client: Client, layers: Model) -> None:
        """From now on *client* has these *layers*."""
        if layers:
            client.kept[KEPT] = {**client.kept.get(KEPT, {}), **layers}

    def delivered(self, client: Client) -> None:
        """It was sent all that there was for it."""
        self._to_deliver.pop(client.index, None)

    # -- a round -----------------------------------------------------------------------------------------------------

    def begin_round(self, clients: Sequence[Client]) -> Sharing:
        """What is common in a round of these *clients*."""
        if self._settings.common == "round":
            self.sharing = self._shared_by(clients)
        return self.sharing

    def bytes_beside(self, objective: Objective) -> tuple[float, float]:
        """Bytes (down, up) that go beside the layers of each client."""
        down, up = self._server_rule.bytes_beside(self.table)
        return down, up + sum(objective.bytes_of(name, self.table) for name in objective.tells)

    def start(self, client: Client) -> tuple[Model, float]:
        """The shared layers that *client* begins a round with, and the bytes of those that are sent for it."""
        table, groups = client.model, self.sharing.of(client.model)
        if self._settings.common == "round":
            own = self.world.own_model(client)
            sent = sorted(self._to_deliver.get(client.index, ()))
            shared = {segment: own[segment] for group in groups for segment in group.segments if own}
            return shared, sum(table.bytes(segment) for segment in sent)
        sent = list(segment for group in groups if group in self._averaged for segment in group.segments)
        begin: dict[str, Any] = {}
        for group in groups:
            if group in self._means:
                begin |= self._means[group]["model"]
            elif own := self.world.own_model(client):
                begin |= {segment: own[segment] for segment in group.segments}
        return begin, sum(table.bytes(segment) for segment in sent)

    def fold(
        self, rule: ServerRule | None, updates: Sequence[Update], *, round_number: int
    ) -> Generator[Event, Any, None]:
        """Make the next mean of each group of layers, of those of the *updates* that have it."""
        if not updates:
            return
        yield from self.world.pause(Pause.SERVER, self.world.cloud.aggregation_s)
        clients = self.world.clients
        for group in self.sharing.groups:
            members = [update for update in updates if group in self.sharing.of(clients[update.sender].model)]
            if not members:
                continue
            self._averaged.add(group)
            mean = self._mean(group, members, round_number) if members[0].model else {}
            for update in members:
                client = clients[update.sender]
                self.keep(client, mean)
                if self._settings.common == "round":
                    self._to_deliver.setdefault(client.index, set()).update(group.segments)
        self.version += 1
        self._note_model_of_all()

    def _mean(self, group: Group, updates: Sequence[Update], round_number: int) -> Model:
        learner, table = self.world.learner, self.sharing.first_table(group)
        of_group = [_of_segments(update, group.segments) for update in updates]
        round_only = self._settings.common == "round"
        if round_only and len(updates) == 1:
            return of_group[0].model
        state = None if round_only else self._means.get(group)
        if state is None:
            begins = {tuple(handle.reference for handle in update.base.values()) for update in of_group}
            if len(begins) > 1:  # there is no model that all have begun with: it is the mean of weights
                mean = weighted_change(learner, {}, of_group, round_number=round_number)
                return self._noted(group, {"model": mean})
            state = {"model": of_group[0].base}
        about = Aggregation(round_number, table, len(self.world.clients), self.world.dataset.classes)
        return self._noted(group, self._server_rule.apply(learner, state, of_group, about))

    def _noted(self, group: Group, state: State) -> Model:
        if self._settings.common == "run":
            self._means[group] = state
        return state["model"]

    def _note_model_of_all(self) -> None:
        """Where all have one model, that is the state of this site, as of others."""
        if self.sharing.is_one_model and (group := self.sharing.groups[0]) in self._means:
            self.state = self._means[group]


def _paths(table: ModelTable) -> dict[str, str]:
    """By segment: what names it and all that is before it."""
    if not isinstance(table, SegmentedTable):
        return {}
    return {name: f"{name} {table.path(end)}" for name, end in zip(table.parts, table.ends, strict=True)}


def _of_segments(update: Update, segments: Sequence[str]) -> Update:
    model = {segment: update.model[segment] for segment in segments}
    base = {segment: update.base[segment] for segment in segments}
    return update._replace(models={**update.models, "model": model}, base=base)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTask(Task):
    """Train the whole model, send it or the layers that are *shared*, and keep the others."""

    site: LayerServer
    shared: tuple[str, ...]

    @property
    def written(self) -> tuple[str, ...]:
        """The segments that the codec writes."""
        return self.shared

    def start(self, world: World, client: Client) -> Model:
        """What it has, and what it was sent."""
        return {**world.own_model(client), **self.model}

    def learn(self, world: World, client: Client, capture: Capture | None, begun: Trained | None) -> Message:
        """The trained layers that are shared; it keeps those that are not."""
        self.site.delivered(client)
        message = super(LayerTask, self).learn(world, client, capture, begun)
        trained = message.models["model"]
        own = {part: handle for part, handle in trained.items() if part not in self.shared}
        self.site.keep(client, own)
        world.learner.compute_soon(own)
        shared = {part: handle for part, handle in trained.items() if part in self.shared}
        return message._replace(models={**message.models, "model": shared})
