"""The plain PyTorch loop that laws of learning compare fedsim with: its own module, its own averaging, its own SGD.

It shares with fedsim the documented streams (``model/init``, ``selection``, ``batches``, ``data/pass``) and the
documented arithmetic of the mean: base + the sum of w_i (model_i - base), in float32, in an even number of partial sums
of at most 8. They are in client order where all clients have as many samples; otherwise they share these evenly.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.nn.functional import cross_entropy, linear

from fedsim.kernel.streams import Stream
from fedsim.scenario.build import gather_materials
from fedsim.scenario.schema import Scenario

DEVICES, HIDDEN, PARTIAL_SUM = 20, 16, 8
NAMES = {  # fedsim's name -> this file's
    "extractor.fc1.weight": "first.weight",
    "extractor.fc1.bias": "first.bias",
    "classifier.fc2.weight": "second.weight",
    "classifier.fc2.bias": "second.bias",
}

Weights = list[torch.Tensor]


class Net(torch.nn.Module):
    """64 pixels, one hidden layer, 10 digits."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, HIDDEN)
        self.second = torch.nn.Linear(HIDDEN, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(linear(x.flatten(1), self.first.weight, self.first.bias))
        return linear(hidden, self.second.weight, self.second.bias)


@dataclass
class Loop:
    """Everything that a plain training script would have as global variables."""

    scenario: Scenario
    mu: float | None = None
    uses: dict[int, int] = field(default_factory=dict)
    net: torch.nn.Module = field(default_factory=Net)

    def __post_init__(self) -> None:
        self.data = gather_materials(self.scenario, seed=1).dataset
        self.x, self.y = torch.tensor(self.data.x), torch.tensor(self.data.y)
        draw = Stream(1, "model/init").generator()
        with torch.no_grad():
            for layer in self.net.children():
                assert isinstance(layer, torch.nn.Linear)
                bound = np.sqrt(6 / (layer.in_features + layer.out_features))
                uniform = 2 * draw.random((layer.out_features, layer.in_features)) - 1
                layer.weight.copy_(torch.tensor((bound * uniform).astype(np.float32)))
                layer.bias.zero_()

    @property
    def weights(self) -> Weights:
        return [parameter.detach().clone() for parameter in self.net.parameters()]

    def put(self, weights: Weights) -> None:
        with torch.no_grad():
            for parameter, weight in zip(self.net.parameters(), weights, strict=True):
                parameter.copy_(weight)

    def train(self, start: Weights, client: int, ids: np.ndarray) -> Weights:
        """One local training of *client* (-1: the cloud) on the samples *ids*."""
        settings = self.scenario.training
        self.put(start)
        optimiser = torch.optim.SGD(
            self.net.parameters(),
            lr=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        order = Stream(1, "batches", client, self.uses.get(client, 0)).generator()
        self.uses[client] = self.uses.get(client, 0) + 1
        for _ in range(settings.epochs):
            shuffled = ids[order.permutation(len(ids))]
            for batch in np.split(shuffled, range(settings.batch_size, len(ids), settings.batch_size)):
                optimiser.zero_grad()
                self.loss(batch).backward()
                for parameter, weight in zip(self.net.parameters(), start, strict=True):
                    if self.mu is not None:
                        parameter.grad.add_(parameter.detach() - weight, alpha=self.mu)
                optimiser.step()
        return self.weights

    def loss(self, batch: np.ndarray) -> torch.Tensor:
        return cross_entropy(self.net(self.x[batch]), self.y[batch])

    def train_on_a_stream(self, start: Weights, client: int, samples: int) -> Weights:
        """One local training on the next samples of the client's passes through its own, each pass shuffled anew."""
        own, use = self.data.train_ids[client], self.uses.get(client, 0)
        stream = [
            own[Stream(1, "data/pass", client, number).generator().permutation(len(own))]
            for number in range((use + 1) * samples // len(own) + 1)
        ]
        return self.train(start, client, np.concatenate(stream)[use * samples : (use + 1) * samples])

    def mean(
        self, base: Weights, models: Sequence[Weights], shares: Sequence[float], samples: Sequence[int] | None = None
    ) -> Weights:
        """base + (d_1 + ... + d_5) + (d_6 + ... + d_9), d_i = share_i (model_i - base), where all have as many samples.

        A lone d is a sum; otherwise there are 2, 4, ... sums, the first few even number that leaves none with more
        than 8, and as many d in each as in any other, or one more in those that come first. Of clients with different
        numbers of *samples*, it is always the largest one's turn: `_dealt`.
        """
        total: Weights = []
        sums = next(sums for sums in itertools.count(2, 2) if len(models) <= PARTIAL_SUM * sums)
        dealt = np.array_split(np.arange(len(models)), 1 if len(models) == 1 else sums)
        if samples is not None and min(samples) < max(samples):
            dealt = _dealt(list(samples), min(sums, len(models)))
        for numbers in dealt:
            some: Weights = []
            for number in numbers:
                change = [(new - old) * shares[number] for new, old in zip(models[number], base, strict=True)]
                some = [left + right for left, right in zip(some, change, strict=True)] if some else change
            total = [left + right for left, right in zip(total, some, strict=True)] if total else some
        return [left + right for left, right in zip(base, total, strict=True)]

    def accuracy(self) -> float:
        ids = torch.tensor(self.data.test_ids)
        with torch.no_grad():
            return (self.net(self.x[ids]).argmax(1) == self.y[ids]).double().mean().item()

    def averaging(self, cohort: int, weighting: str) -> tuple[dict[str, torch.Tensor], list[float]]:
        """Federated averaging; the final model, and the accuracy after each round."""
        model, accuracies = self.weights, []
        for number in range(1, self.scenario.stop.rounds + 1):
            chosen = sorted(Stream(1, "selection", 0, number).generator().permutation(DEVICES)[:cohort].tolist())
            samples = [len(self.data.train_ids[client]) if weighting == "samples" else 1 for client in chosen]
            models = [self.train(model, client, self.data.train_ids[client]) for client in chosen]
            sizes = [len(self.data.train_ids[client]) for client in chosen]
            model = self.mean(model, models, [number / sum(samples) for number in samples], sizes)
            self.put(model)
            accuracies.append(self.accuracy())
        return self.named(), accuracies

    def pooled(self) -> tuple[dict[str, torch.Tensor], list[float]]:
        """Plain SGD on everybody's samples; a round is one training."""
        pool, accuracies = np.concatenate(self.data.train_ids), []
        for _ in range(self.scenario.stop.rounds):
            self.put(self.train(self.weights, -1, pool))
            accuracies.append(self.accuracy())
        return self.named(), accuracies

    def named(self) -> dict[str, torch.Tensor]:
        state = self.net.state_dict()
        return {name: state[here] for name, here in NAMES.items()}


def _dealt(samples: list[int], sums: int) -> list[list[int]]:
    """Who is in which sum: again and again the largest that is left goes where there are fewest samples, and room."""
    left, dealt, held = [*range(len(samples))], [[] for _ in range(sums)], [0] * sums
    while left:
        largest = next(one for one in left if samples[one] == max(samples[other] for other in left))
        least = min((held[at], len(members), at) for at, members in enumerate(dealt) if len(members) < PARTIAL_SUM)[-1]
        dealt[least].append(largest)
        held[least] += samples[largest]
        left.remove(largest)
    return [dealt[at] for at in sorted(range(sums), key=lambda at: (-held[at], at))]


def differences(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> dict[str, float]:
    """Name -> largest difference, where there is any; empty when equal bit for bit."""
    assert one.keys() == other.keys()
    unequal = [name for name in one if not torch.equal(one[name], other[name])]
    return {name: (one[name] - other[name]).abs().max().item() for name in unequal}
