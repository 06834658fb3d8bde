"""The agent looks for what to keep of a trained model, and learns from how good what is left is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from fedsim.learning.agent.network import ACTOR, CRITIC, Agent
from fedsim.learning.agent.ppo import DEVIATION, Adam, Step, entropy, log_probability, loss, normalised_returns
from fedsim.learning.agent.state import State, Viewer, stacked
from fedsim.models.convolutions import Skeleton, left_of

__all__ = ["MISSED", "Budget", "Found", "Search"]

MISSED = -100.0
"""The reward of an episode that has ended before enough was left out."""


@dataclass(frozen=True)
class Budget:
    """How the agent searches and learns."""

    target: float
    """Share of the FLOPs that has to be left out."""
    steps: int
    """In an episode, at most."""
    least: float
    """Share of its filters that each convolution keeps, at least."""
    update_steps: int
    """It learns as soon as so many steps have been taken, at the end of an episode."""
    update_epochs: int
    """Passes over these steps."""


@dataclass(frozen=True)
class Found:
    """What one episode ends with."""

    kept: list[int]
    """Filters of each convolution."""
    met: bool
    """Whether enough is left out."""
    reward: float


@dataclass(eq=False)
class Search:
    """Episodes on one trained model, and what the agent learns from them."""

    agent: Agent
    skeleton: Skeleton
    viewer: Viewer
    budget: Budget
    reward: Callable[[Sequence[int]], float]
    """Of a model with so many filters kept: its accuracy, in percent."""
    generator: np.random.Generator
    trained: Sequence[torch.Tensor] = ()
    """The parameters that are learned."""
    graphs_too: bool = False
    """Whether graph networks are learned: else each state is embedded once."""
    _steps: list[Step] = field(default_factory=list)
    _states: list[State] = field(default_factory=list)
    _embedded: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    _adam: Adam | None = None

    def look(self) -> Found:
        """One pass in which every action is its mean; nothing is rated or learned."""
        return self._episode(explores=False)

    def explore(self) -> Found:
        """One episode to learn from."""
        found = self._episode(explores=True)
        if len(self._steps) >= self.budget.update_steps:
            self._learn()
        return found

    @torch.no_grad()
    def _episode(self, *, explores: bool) -> Found:
        agent, budget = self.agent, self.budget
        filters = np.array([one.filters for one in self.skeleton.convolutions])
        shares, kept, left = np.ones(len(filters)), filters.tolist(), 1.0
        for number in range(budget.steps):
            state = self.viewer.state(kept, left)
            embedded = agent.embedded(ACTOR, state)
            means = action = agent.means(embedded)
            if explores:
                drawn = self.generator.standard_normal(len(filters), np.float32)
                action = means + DEVIATION * torch.from_numpy(drawn)
            shares = np.clip(shares * (1 - action.double().numpy()), budget.least, 1.0)
            kept = _kept(filters, shares)
            left = self.skeleton.flops_share(kept)
            met = 1 - left >= budget.target
            last = met or number == budget.steps - 1
            reward = 0.0
            if last and explores:
                reward = self.reward(kept) if met else MISSED
            if explores:
                self._steps.append(Step(action, log_probability(action, means), reward, last))
                self._states.append(state)
                if not self.graphs_too:
                    self._embedded.append((embedded, agent.embedded(CRITIC, state)))
            if last:
                return Found(kept, met, reward)
        raise AssertionError("an episode has a step at least")

    def _learn(self) -> None:
        """From the steps since it has last learned."""
        agent, steps = self.agent, self._steps
        self._adam = self._adam or Adam(self.trained)
        returns, spread = normalised_returns(steps), entropy(len(self.skeleton.convolutions))
        actions = torch.stack([step.action for step in steps])
        before = torch.stack([step.log_probability for step in steps])
        if self.graphs_too:
            states = stacked(self._states)
        else:
            of_actor, of_critic = map(torch.stack, zip(*self._embedded, strict=True))

        def objective() -> torch.Tensor:
            if self.graphs_too:
                seen, judged = agent.embedded(ACTOR, states), agent.embedded(CRITIC, states)
            else:
                seen, judged = of_actor, of_critic
            return loss(log_probability(actions, agent.means(seen)), before, agent.values(judged), returns, spread)

        with torch.enable_grad():
            for _ in range(self.budget.update_epochs):
                self._adam.minimise(objective)
        self._steps, self._states, self._embedded = [], [], []


def _kept(filters: npt.NDArray[np.int64], shares: npt.NDArray[np.float64]) -> list[int]:
    return [left_of(int(number), float(share)) for number, share in zip(filters, shares, strict=True)]
