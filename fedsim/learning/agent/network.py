"""The graph network, and the actor and the critic on top of it.

With N convolutions: the graph network has 5,670 parameters, and the actor's own layers 50 x 200 + 200 + 200 N + N. What
one model's agent has learned about graphs, another one's can take; its actor's last layer it cannot.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch.nn.functional import linear

from fedsim.learning.agent.state import FEATURES, State
from fedsim.models.convolutions import Skeleton

__all__ = ["ACTOR", "CRITIC", "Agent", "Tensors", "drawn_agent", "graph_network_shapes", "head_shapes"]

Tensors = dict[str, torch.Tensor]
HIDDEN = 50
UNITS = 200
ACTOR, CRITIC = "actor", "critic"
"""Both have a graph network of their own."""


def graph_network_shapes(of: str) -> dict[str, tuple[int, ...]]:
    """The parameters of a graph network: two graph convolutions, each with a layer behind it."""
    return {
        f"{of}.channels.weight": (HIDDEN, FEATURES),
        f"{of}.channels.bias": (HIDDEN,),
        f"{of}.embedding.weight": (FEATURES, HIDDEN),
        f"{of}.embedding.bias": (FEATURES,),
        f"{of}.maps.weight": (HIDDEN, FEATURES),
        f"{of}.maps.bias": (HIDDEN,),
        f"{of}.graph.weight": (HIDDEN, HIDDEN),
        f"{of}.graph.bias": (HIDDEN,),
    }


def head_shapes(convolutions: int) -> dict[str, tuple[int, ...]]:
    """The parameters on top of both: the actor's two layers, and the critic's one."""
    return {
        "actor.mlp1.weight": (UNITS, HIDDEN),
        "actor.mlp1.bias": (UNITS,),
        "actor.mlp2.weight": (convolutions, UNITS),
        "actor.mlp2.bias": (convolutions,),
        "critic.value.weight": (1, HIDDEN),
        "critic.value.bias": (1,),
    }


def drawn_agent(shapes: Mapping[str, tuple[int, ...]], generator: np.random.Generator) -> Tensors:
    """Parameters to begin with, by PyTorch's rule for its layers: uniform, up to one over the root of the inputs."""
    made: Tensors = {}
    for name, shape in shapes.items():
        inputs = shapes[name.replace(".bias", ".weight")][1]
        bound = inputs**-0.5
        made[name] = torch.from_numpy(generator.uniform(-bound, bound, shape).astype(np.float32))
    return made


class Agent:
    """An actor and a critic for one model."""

    def __init__(self, skeleton: Skeleton, parameters: Tensors) -> None:
        """*parameters* may be changed in place afterwards."""
        self.parameters = parameters
        self._by_convolution, self._beside = _adjacency(skeleton)

    def embedded(self, of: str, state: State) -> torch.Tensor:
        """(..., 50) a model, as the graph network of the actor or of the critic sees it."""
        given = self._layer(of, "channels")
        channels = state.alike.sum(dim=-1, keepdim=True)  # (..., N, 1)
        # A graph convolution (Kipf and Welling, ICLR 2017) along the edges, with a loop at each node: what comes in is
        # divided by the roots of both nodes' numbers of incoming edges, which are 1, 2, 2 and 1 + channels.
        sources = given(state.sources)
        through = given(state.channels / 2 + state.sources.unsqueeze(-2) / 2**0.5)
        outputs = given((state.outputs + state.channels) / 2)
        summed = (state.alike.unsqueeze(-1) * state.outputs).sum(dim=-2)
        sinks = given(state.sinks / (channels + 1) + summed / (2 * (channels + 1)).sqrt())
        middle = (state.alike.unsqueeze(-1) * (through + outputs)).sum(dim=-2)
        pooled = (sources + middle + sinks) / (2 * channels + 2)
        convolutions = self._layer(of, "embedding")(pooled)  # (..., N, 20)
        # The same over feature maps. What a convolution makes of one is multiplied with how it was embedded.
        gated = (self._by_convolution @ state.maps)[..., 1:, :] * convolutions
        plain = self._beside @ state.maps
        taken = torch.cat([plain[..., :1, :], plain[..., 1:, :] + gated], dim=-2)
        return self._layer(of, "graph")(self._layer(of, "maps")(taken).mean(dim=-2))

    def means(self, embedded: torch.Tensor) -> torch.Tensor:
        """(..., N) the mean action in each state."""
        hidden = linear(embedded, *self._of("actor.mlp1")).relu()
        return linear(hidden, *self._of("actor.mlp2")).tanh()

    def values(self, embedded: torch.Tensor) -> torch.Tensor:
        """(...) what the critic expects of each state."""
        return linear(embedded, *self._of("critic.value")).tanh().squeeze(-1)

    def _of(self, layer: str) -> tuple[torch.Tensor, torch.Tensor]:
        return self.parameters[f"{layer}.weight"], self.parameters[f"{layer}.bias"]

    def _layer(self, of: str, name: str) -> _Layer:
        return _Layer(*self._of(f"{of}.{name}"))


class _Layer:
    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self._weight, self._bias = weight, bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return linear(x, self._weight, self._bias).tanh()


def _adjacency(skeleton: Skeleton) -> tuple[torch.Tensor, torch.Tensor]:
    """(1 + N, 1 + N) twice: what comes into each feature map by convolutions; and by shortcuts, with its own loop.

    Divided by the roots of the numbers of edges that come into both.
    """
    size = 1 + len(skeleton.convolutions)
    by_convolution, beside = torch.zeros(size, size), torch.eye(size)
    for place, one in enumerate(skeleton.convolutions):
        by_convolution[1 + place, 0 if one.source is None else 1 + one.source] += 1
    for begin, end in skeleton.shortcuts:
        beside[1 + end, 0 if begin is None else 1 + begin] += 1
    degree = (by_convolution + beside).sum(dim=1).rsqrt()
    scale = degree[:, None] * degree
    return by_convolution * scale, beside * scale
