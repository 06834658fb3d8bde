"""A protocol without rounds, and its rules, as somebody else would write them: nobody waits for anybody.

(FedAsync: Xie, Koyejo and Gupta, arXiv:1903.03934, algorithm 1; FedBuff: Nguyen et al., AISTATS 2022, algorithm 1.)
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import PrivateAttr
from simpy import Event

from fedsim.kernel.inbox import Inbox
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.learner import Learner
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.operation import Inputs, Operation
from fedsim.learning.operations.partial_sum import TERM, PartialSum
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.site import Site
from fedsim.protocols.world import Client, World
from fedsim.settings import Count, NonNegative, OneOf, Positive


@dataclass(frozen=True)
class Mix(Operation):
    """``(1 - share) w + share w_k``."""

    name: ClassVar[str] = "mix"
    share: float

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        own, other = inputs.model("own"), inputs.model("other")
        return {
            part: {name: (1 - self.share) * one + self.share * other[part][name] for name, one in tensors.items()}
            for part, tensors in own.items()
        }


class Mixing(ServerRule):
    """FedAsync's: one model after the other is mixed in, each for its weight."""

    name: Literal["mixing"] = "mixing"
    rate: Positive = 0.6

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        model = state["model"]
        for update in updates:
            given = {"own": model, "other": update.model}
            model = learner.apply(Mix(self.rate * update.weight), given, model, round_number=at.round_number)
        return {**state, "model": model}


class Buffered(ServerRule):
    """FedBuff's: the mean of the changes, each of the model that its client began with, and for its weight."""

    name: Literal["buffered"] = "buffered"
    rate: Positive = 1.0

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        model = state["model"]
        total: Mapping[str, Any] = {}
        for update in sorted(updates, key=lambda update: update.sender):
            weighed = PartialSum((self.rate * update.weight / len(updates),))
            change = learner.apply(
                weighed, {"base": update.base, TERM: update.model}, model, round_number=at.round_number
            )
            given = {"base": total, "change": change}
            total = learner.apply(Add(), given, model, round_number=at.round_number) if total else change
        made = learner.apply(Add(), {"base": model, "change": total}, model, round_number=at.round_number)
        return {**state, "model": made}


class Asynchronous(Protocol):
    """So many clients are at work at any time; as soon as enough have come home, there is a next model."""

    name: Literal["asynchronous"] = "asynchronous"
    concurrency: Count
    """C: clients at work at a time."""
    folded: Count = 1
    """K: updates that make the next model."""
    exponent: NonNegative = 0.5
    """An update of staleness tau weighs ``(tau + 1) ** -exponent``."""
    refill: Literal["on_arrival", "on_aggregation"] = "on_arrival"
    """When the next clients set out in the place of those who are back."""
    server: Annotated[ServerRule, OneOf("rules")] = Mixing()
    _seen: list[tuple[int, int]] = PrivateAttr(default_factory=list)
    """Sender and staleness of each update, in the order in which they were folded."""

    def run(self, world: World) -> Generator[Event, Any, None]:
        cloud, inbox = Site(world), Inbox(world.env)
        away, turns = set[Client](), count()

        def send_out(number: int) -> None:
            task = cloud.task(number, Plain(), Float32())
            free = [client for client in world.clients if client not in away]
            client = free[world.streams("selection", 0, next(turns)).generator().integers(len(free))]
            away.add(client)
            inbox.expect(cloud.visit(client, task), order=client.index)

        for _ in range(self.concurrency):
            send_out(1)
        for number in world.loop.rounds():
            updates: list[Update] = []
            while len(updates) < self.folded:
                arrival = yield from inbox.next()
                away.remove(arrival.journey.of)
                if not arrival.lost:
                    updates.append(self._weighed(arrival.value, cloud.version))
                if arrival.lost or (self.refill == "on_arrival" and len(updates) < self.folded):
                    send_out(number)
            yield from cloud.fold(self.server, updates, round_number=number)
            for _ in range(self.concurrency - len(away)):
                send_out(number + 1)
            last = arrival.journey.of.index
            world.loop.finish_round(
                cloud.state["model"], selected=len(updates), participants=len(updates), closed_by=last
            )

    def _weighed(self, update: Update, version: int) -> Update:
        staleness = version - update.version
        self._seen.append((update.sender, staleness))
        return update._replace(weight=(staleness + 1) ** -self.exponent)
