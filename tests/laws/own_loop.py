"""Plain PyTorch loops of what clients have to themselves, written from the papers: FedPer, and FedAvg then fine-tune.

One client after the other, and every model is a list of tensors. Shares with fedsim what `plain_loop` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from asked import Asked
from plain_loop import DEVICES, Loop, Weights

from fedsim.kernel.streams import Stream

BASE = 2
"""Tensors of the base layers, the extractor; those after them are personal."""


class OwnLoop(Loop):
    """Accuracies of each client's own model on its own test samples, in the clients' order."""

    def fedper(self, rounds: Sequence[Sequence[Asked]]) -> tuple[Weights, list[list[float]]]:
        """Algorithms 1 and 2: the last base layers, and after each round everybody's accuracy.

        Who is lost or late keeps what it has learned of its personal layers.
        """
        initial = self.weights
        base, personal = initial[:BASE], [initial[BASE:] for _ in range(DEVICES)]
        accuracies = []
        for asked in rounds:
            sent, weights = [], []
            for client, arrives in sorted(asked):
                trained = self.train([*base, *personal[client]], client, self.data.train_ids[client])
                personal[client] = trained[BASE:]
                if arrives:
                    sent.append(trained[:BASE])
                    weights.append(len(self.data.train_ids[client]))
            if sent:
                base = [
                    sum(weight / sum(weights) * one[layer] for one, weight in zip(sent, weights, strict=True))
                    for layer in range(BASE)
                ]
            accuracies.append([self.accuracy_of(client, [*base, *personal[client]]) for client in range(DEVICES)])
        return base, accuracies

    def tuned(self, model: Weights, epochs: int) -> list[float]:
        """Everybody's accuracy after so many epochs of plain SGD from *model* on its own samples."""
        settings, accuracies = self.scenario.training, []
        for client, ids in enumerate(self.data.train_ids):
            self.put(model)
            optimiser = torch.optim.SGD(self.net.parameters(), lr=settings.learning_rate, momentum=settings.momentum)
            order = Stream(1, "finetune", client).generator()
            for _ in range(epochs):
                shuffled = ids[order.permutation(len(ids))]
                for first in range(0, len(ids), settings.batch_size):
                    optimiser.zero_grad()
                    self.loss(shuffled[first : first + settings.batch_size]).backward()
                    optimiser.step()
            accuracies.append(self.accuracy_of(client, self.weights))
        return accuracies

    def accuracy_of(self, client: int, model: Weights) -> float:
        self.put(model)
        ids = torch.tensor(self.data.client_test_ids[client])
        with torch.no_grad():
            return (self.net(self.x[ids]).argmax(1) == self.y[ids]).double().mean().item()
