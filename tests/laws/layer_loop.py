"""A plain PyTorch loop of FlexiFed, written from its algorithms: a model is a list of (weight, bias), one a layer.

Whom a layer is averaged with is found by the paper's recursion, over lists of widths. Shares with fedsim the documented
streams, with that of each layer's start, and nothing of what it says of common layers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from asked import Asked
from torch.nn.functional import cross_entropy, linear

from fedsim.kernel.streams import Stream
from fedsim.scenario.build import gather_materials
from fedsim.scenario.schema import Scenario

PIXELS, CLASSES = 64, 10
Layer = tuple[torch.Tensor, torch.Tensor]
Widths = tuple[int, ...]
"""Of a model, from its samples to its scores."""


def recursion(strategy: str, models: Mapping[int, Widths], most: int | None = None) -> dict[int, list[frozenset[int]]]:
    """For each client, layer by layer, whom it is averaged with, itself included (algorithms 1, 2 and 3).

    Of each model, at *most* so many layers are averaged with others.
    """
    layers = {client: [*pairwise(widths)] for client, widths in models.items()}
    made = {client: [frozenset([client])] * len(own) for client, own in layers.items()}

    def common(clients: Sequence[int], begin: int) -> int:
        """What is common to all from *begin* on is averaged; how many layers are done then."""
        end = begin
        while all(len(layers[one]) > end for one in clients) and len({layers[one][end] for one in clients}) == 1:
            for one in clients:
                made[one][end] = frozenset(clients)
            end += 1
        return end

    def maximal(clients: Sequence[int], begin: int) -> None:
        end = common(clients, begin)
        groups: dict[object, list[int]] = {}
        for one in clients:
            if len(layers[one]) > end:
                groups.setdefault(layers[one][end], []).append(one)
        for group in groups.values():
            if len(group) > 1:
                maximal(group, end)

    everybody = sorted(models)
    if strategy == "max":
        maximal(everybody, 0)
    if strategy in ("basic", "clustered"):
        end = common(everybody, 0)
    if strategy in ("clustered", "clustered_fl"):
        for architecture in set(models.values()):
            common([one for one in everybody if models[one] == architecture], end if strategy == "clustered" else 0)
    for client in everybody if most is not None else ():
        made[client][most:] = [frozenset([client])] * len(made[client][most:])
    return made


class LayerLoop:
    """Clients whose models have these *widths*, in double precision."""

    def __init__(
        self, scenario: Scenario, widths: Sequence[Widths], *, own_start: bool = False, layers: int | None = None
    ) -> None:
        self.scenario, self.widths, self.layers = scenario, list(widths), layers
        self.data = gather_materials(scenario, seed=1).dataset
        self.x, self.y = torch.tensor(self.data.x).double(), torch.tensor(self.data.y)
        self.uses = [0] * len(self.widths)
        self.has = [
            _start(
                own,
                client if own_start else None,
                alone=(layers or len(own)) >= len(own) - 2  # where the last part begins, or behind it: no further cut
                and all(one == own or one[:2] != own[:2] for one in widths),
            )
            for client, own in enumerate(self.widths)
        ]

    def run(
        self, strategy: str, rounds: Sequence[Sequence[Asked]], *, by_round: bool = False, server: bool = True
    ) -> list[list[float]]:
        """The accuracy of each client's own model after each round.

        *by_round*: what is common is so among those who are asked. *server*: who is asked begins with the last mean.
        """
        means: dict[tuple[int, frozenset[int]], Layer] = {}
        if server:
            for client, layers in recursion(strategy, dict(enumerate(self.widths)), self.layers).items():
                means |= {(at, some): self.has[client][at] for at, some in enumerate(layers) if len(some) > 1}
        accuracies = []
        for asked in rounds:
            among = [one.client for one in asked] if by_round else range(len(self.widths))
            whom = recursion(strategy, {client: self.widths[client] for client in among}, self.layers)
            trained = {}
            for client, _ in sorted(asked):
                begin = [
                    means.get((at, some), self.has[client][at]) if not by_round else self.has[client][at]
                    for at, some in enumerate(whom[client])
                ]
                trained[client] = self.train(begin, client)
                for at, some in enumerate(whom[client]):
                    if len(some) == 1:
                        self.has[client][at] = trained[client][at]
            arrived = sorted(one.client for one in asked if one.arrives)
            for client in arrived:
                for at, some in enumerate(whom[client]):
                    if len(some) > 1:
                        mean = _mean([trained[one][at] for one in arrived if one in some])
                        self.has[client][at] = means[at, some] = mean
            accuracies.append([self.accuracy_of(client) for client in range(len(self.widths))])
        return accuracies

    def train(self, begin: Sequence[Layer], client: int) -> list[Layer]:
        settings, ids = self.scenario.training, self.data.train_ids[client]
        model = [(weight.clone().requires_grad_(), bias.clone().requires_grad_()) for weight, bias in begin]
        optimiser = torch.optim.SGD(
            [tensor for layer in model for tensor in layer], lr=settings.learning_rate, momentum=settings.momentum
        )
        order = Stream(1, "batches", client, self.uses[client]).generator()
        self.uses[client] += 1
        for _ in range(settings.epochs):
            shuffled = ids[order.permutation(len(ids))]
            for batch in np.split(shuffled, range(settings.batch_size, len(ids), settings.batch_size)):
                optimiser.zero_grad()
                cross_entropy(_scores(model, self.x[batch]), self.y[batch]).backward()
                optimiser.step()
        return [(weight.detach(), bias.detach()) for weight, bias in model]

    def accuracy_of(self, client: int) -> float:
        ids = torch.tensor(self.data.client_test_ids[client])
        scores = _scores(self.has[client], self.x[ids])
        return (scores.argmax(1) == self.y[ids]).double().mean().item()


def _scores(model: Sequence[Layer], x: torch.Tensor) -> torch.Tensor:
    made = x.flatten(1)
    for at, (weight, bias) in enumerate(model):
        made = linear(made if at == 0 else torch.relu(made), weight, bias)
    return made


def _mean(layers: Iterable[Layer]) -> Layer:
    weights, biases = zip(*layers, strict=True)
    return sum(weights) / len(weights), sum(biases) / len(biases)


def _start(widths: Widths, client: int | None, *, alone: bool) -> list[Layer]:
    """Layer by layer from a stream named by all signatures so far; from one stream where nothing is in common."""
    shapes = [*pairwise(widths)]
    signatures = [f"linear(inputs={inputs}, outputs={outputs})" for inputs, outputs in shapes]
    whole = Stream(1, "model/init", client or 0).generator()
    layers = []
    for at, (inputs, outputs) in enumerate(shapes):
        text = "\n".join(["xavier_uniform", *signatures[: at + 1]])
        path = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        draw = whole if alone else Stream(1, f"model/init/{path}", client or 0).generator()
        bound = np.sqrt(6 / (inputs + outputs))
        weight = (bound * (2 * draw.random((outputs, inputs)) - 1)).astype(np.float32)
        layers.append((torch.tensor(weight).double(), torch.zeros(outputs).double()))
    return layers
