"""SPATL's selection (Yu et al., SC 2022, section IV-B): an agent says how much of each convolution is kept.

In the first rounds each client's agent learns from how good its own trained model is with what would be kept. Later, it
is asked once. The filters of the largest L2 norm are those that stay.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib import resources
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Interval

from fedsim.data.dataset import FederatedDataset
from fedsim.errors import Misfit
from fedsim.kernel.streams import Stream
from fedsim.learning.selections.selection import Asked, Chosen, MeasuredSelection
from fedsim.models.convolutions import Skeleton, left_of, strongest
from fedsim.settings import Count, NonNegativeInt

if TYPE_CHECKING:
    from fedsim.learning.agent.network import Tensors
    from fedsim.learning.agent.search import Found

__all__ = ["AGENT", "GnnPpo"]

AGENT = "agent"
"""What a client keeps: the layers of its agent that it has trained."""
PRETRAINED = "pretrained.safetensors"


class GnnPpo(MeasuredSelection):
    """SPATL's agent: a graph network, trained by reinforcement, says how much of each convolution to keep."""

    name: Literal["gnn_ppo"] = "gnn_ppo"
    remembers: ClassVar[tuple[str, ...]] = (AGENT,)
    tells: ClassVar[tuple[str, ...]] = ("target_met",)

    target: Annotated[float, Interval(gt=0, lt=1)] = 0.2
    """Share of the extractor's FLOPs that is to be left out, at least."""
    least_keep: Annotated[float, Interval(gt=0, le=1)] = 0.1
    """Share of its filters that each convolution keeps, at least."""
    episodes: Count = 30
    """Tries in each training of a client, while its agent learns."""
    steps: Count = 10
    """Actions in an episode, at most; one that has not met the target by then is rewarded with -100."""
    finetune_rounds: NonNegativeInt = 10
    """Rounds of the run in which agents learn."""
    update_steps: Annotated[int, Interval(ge=2, le=10**6)] = 10
    """Actions after which an agent learns from all of them, at the end of an episode. At most ``episodes``: each of
    these may be one action, and agents learn in each training."""
    update_epochs: Count = 20
    """Passes over these actions (the paper, section V-A; its code makes 10)."""
    reward_samples: Count = 128
    """Training samples, at most and a fifth of a client's own at most, that it holds back to rate what would be kept.
    Nobody trains on them."""
    node_features: Literal["sizes", "random"] = "sizes"
    """What the agent sees at each node of the model's graph: sizes and norms, or random numbers, as in the authors'
    code."""
    trains: Literal["mlp", "all"] = "mlp"
    """What of the agent a client trains: the layers behind the graph networks (the paper), or all of it."""
    pretrained: bool = True
    """Whether graph networks begin as they come with fedsim, trained to prune another model, or at random."""

    @property
    def held_back(self) -> int:
        """As many as rate a choice."""
        return self.reward_samples if self.finetune_rounds else 0

    @property
    def basis(self) -> str:
        """The digest of the graph networks that come with fedsim."""
        return sha256(_pretrained()).hexdigest() if self.pretrained else ""

    def check(self, skeleton: Skeleton, dataset: FederatedDataset) -> None:
        """Classes are needed for an accuracy, and the target must be within reach."""
        if self.finetune_rounds and dataset.regression:
            raise Misfit("'gnn_ppo' rates by accuracy, and this data set has numbers to predict; choose uniform")
        if self.finetune_rounds and self.update_steps > self.episodes:
            problem = f"{self.update_steps} actions are more than {self.episodes} episodes of one action each"
            raise Misfit(f"{problem}, so that an agent may never learn; write less, or more episodes", "update_steps")
        least = [left_of(one.filters, self.least_keep) for one in skeleton.convolutions]
        if (most := 1 - skeleton.flops_share(least)) < self.target:
            problem = (
                f"{self.target:g} of the FLOPs, and with least_keep={self.least_keep:g} at most {most:.3f} of them"
            )
            raise Misfit(f"{problem} can be left out; write less, or a smaller least_keep", "target")

    def learns_in(self, round_number: int) -> bool:
        """In the first ones."""
        return round_number <= self.finetune_rounds

    def rated(self, round_number: int, held_back: int) -> float:
        """One pass of what is held back in each episode, through a model that has just met the target."""
        return self.episodes * held_back * (1 - self.target) if self.learns_in(round_number) else 0.0

    def kept_bytes(self, skeleton: Skeleton) -> float:
        """Four for each number that it trains."""
        from fedsim.learning.agent.network import ACTOR, CRITIC, graph_network_shapes, head_shapes

        shapes = head_shapes(len(skeleton.convolutions))
        if self.trains == "all":
            shapes |= graph_network_shapes(ACTOR) | graph_network_shapes(CRITIC)
        return 4.0 * sum(map(prod, shapes.values()))

    def choose(self, asked: Asked) -> Chosen:
        """What the best episode ends with, if agents learn in that round; else what one pass of mean actions does.

        Of a model that has diverged everything is kept: an agent can neither look at it nor learn from it.
        """
        from fedsim.learning.agent.network import Agent
        from fedsim.learning.agent.search import Budget, Search
        from fedsim.learning.agent.state import Viewer

        skeleton, norms = asked.skeleton, asked.norms()
        agent = Agent(skeleton, self._parameters(asked))
        trained = [name for name in agent.parameters if self.trains == "all" or name.split(".")[1] in HEADS]
        if not asked.finite():
            untouched = {AGENT: {name: agent.parameters[name] for name in trained}}
            return Chosen([np.ones(len(some), np.bool_) for some in norms], untouched, {"target_met": 0.0})
        search = Search(
            agent,
            skeleton,
            Viewer(skeleton, norms, self.target, self.node_features, asked.generator),
            Budget(self.target, self.steps, self.least_keep, self.update_steps, self.update_epochs),
            lambda kept: asked.accuracy([strongest(*one) for one in zip(norms, kept, strict=True)]),
            asked.generator,
            [agent.parameters[name] for name in trained],
            graphs_too=self.trains == "all",
        )
        if asked.learns:
            tried = [search.explore() for _ in range(self.episodes)]
            found = max(tried, key=_rank)
            facts = {"reward": found.reward, "mean_reward": sum(one.reward for one in tried) / len(tried)}
        else:
            found, facts = search.look(), {}
        masks = [strongest(*one) for one in zip(norms, found.kept, strict=True)]
        state = {AGENT: {name: agent.parameters[name] for name in trained}}
        return Chosen(masks, state, {**facts, "target_met": float(found.met)})

    def _parameters(self, asked: Asked) -> Tensors:
        """Those that a client has trained, or those that all begin with."""
        from fedsim.learning.agent.network import ACTOR, CRITIC, drawn_agent, graph_network_shapes, head_shapes

        shapes = (
            graph_network_shapes(ACTOR) | graph_network_shapes(CRITIC) | head_shapes(len(asked.skeleton.convolutions))
        )
        begun = drawn_agent(shapes, Stream(asked.seed, "selection/agent").generator())
        if self.pretrained:
            from safetensors.torch import load

            begun |= {name: tensor.clone() for name, tensor in load(_pretrained()).items()}
        kept = asked.state.get(AGENT, {})
        return begun | {name: tensor.detach().cpu().clone() for name, tensor in kept.items()}


HEADS = ("mlp1", "mlp2", "value")
"""Layers behind the graph networks."""


def _rank(found: Found) -> tuple[bool, float]:
    return found.met, found.reward


@cache
def _pretrained() -> bytes:
    return resources.files("fedsim.learning.agent").joinpath(PRETRAINED).read_bytes()
