"""A server rule of a test's own: the mean, with a note of every update as a rule sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import PrivateAttr

from fedsim.learning.learner import Learner
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update


class Noting(ServerRule):
    """The mean."""

    name: Literal["noting"] = "noting"
    _rounds: dict[int, list[Update]] = PrivateAttr(default_factory=dict)

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        self._rounds[at.round_number] = list(updates)
        return Mean().apply(learner, state, updates, at)

    def seen(self, round_number: int) -> list[Update]:
        """The updates of a round, by their senders."""
        return sorted(self._rounds[round_number], key=lambda update: update.sender)
