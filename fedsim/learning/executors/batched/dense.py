"""A fully connected layer of a group of clients: in factors of a shared base while that pays, else a matrix each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from fedsim.learning.executors.batched.client_tensors import ClientTensors
from fedsim.learning.executors.batched.layer import GroupLayer
from fedsim.learning.executors.batched.low_rank import LowRank, rows_that_pay
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.matrix import LARGE, Matrix

__all__ = ["Dense"]


class Dense(GroupLayer):
    """Weights (outputs, inputs) and biases."""

    def __init__(
        self, recipe: Recipe, weight: torch.Tensor, bias: torch.Tensor | None, clients: int, rows: int
    ) -> None:
        """*rows* is how many samples each client will see at most, counted up to `rows_that_pay`."""
        super().__init__(recipe, weight, bias, clients)
        self._factors: LowRank | None = None
        self._tensors: ClientTensors | None = None
        if recipe.linear and weight.numel() >= LARGE:
            self._factors = LowRank(
                recipe, Matrix(weight, recipe.products), clients, min(rows, rows_that_pay(*weight.shape))
            )
        else:
            self._tensors = ClientTensors.copies(recipe, weight, clients)

    @property
    def tensors(self) -> ClientTensors | None:
        """None while the weights are in factors."""
        return self._tensors

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        """As it is."""
        return held

    def begin(self, client: int) -> None:
        """A new training of *client* begins. If its gradients get another push, factors have no room for that."""
        if self._factors is not None and self._recipe.pushes:
            self._unfold(self._factors)
        super().begin(client)
        if self._factors is not None:
            self._factors.begin(client)

    def restart(self, client: int) -> None:
        """Give *client* the base again."""
        super().restart(client)
        if self._factors is not None:
            self._factors.restart(client)

    def set_push(self, client: int, push: Mapping[str, torch.Tensor]) -> None:
        """What is added to each of *client*'s gradients from now on."""
        super().set_push(client, push)
        if self._factors is not None:
            assert self._factors.push is not None
            self._factors.push[client].copy_(push["weight"])

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """(clients, samples, inputs) to (clients, samples, outputs), for the first clients."""
        if self._factors is not None and self._factors.rows + h.shape[1] > self._factors.capacity:
            self._unfold(self._factors)
        bias = None if self.bias is None else self.bias.value[: len(h), None]
        if self._factors is not None:
            y = self._factors.times_transposed(h)
            return y if bias is None else y.add_(bias)
        assert self._tensors is not None
        weight = self._tensors.value[: len(h)].transpose(1, 2)
        return torch.bmm(h, weight) if bias is None else torch.baddbmm(bias, h, weight)

    def backward(self, d: torch.Tensor, h: torch.Tensor, *, first: bool) -> torch.Tensor | None:
        """Step along the gradient ``d^T h``; returns that of *h*, but for the *first* layer of a model."""
        active = slice(len(d))
        if self.bias is not None:
            self.bias.take(active, d.sum(dim=1))
        if self._factors is not None:
            before = None if first else self._factors.times(d)
            self._factors.step(d, h)
            return before
        assert self._tensors is not None
        before = None if first else torch.bmm(d, self._tensors.value[active])
        if self._recipe.plain:
            self._tensors.value[active].baddbmm_(d.transpose(1, 2), h, alpha=-self._recipe.learning_rate)
        else:
            self._tensors.take(active, torch.bmm(d.transpose(1, 2), h))
        return before

    def state(self, client: int) -> dict[str, torch.Tensor]:
        """One client's weights, in new memory."""
        state = super().state(client)
        return state if self._factors is None else {"weight": self._factors.weights(client)} | state

    def look(self, client: int, kind: str) -> torch.Tensor:
        """One client's weights of that kind, perhaps live."""
        if self._factors is not None and kind == "weight":
            return self._factors.weights(client)
        return super().look(client, kind)

    def starts(self, client: int) -> dict[str, torch.Tensor]:
        """Where its training started, for objectives that ask for it."""
        starts = super().starts(client)
        return starts if self._factors is None else {"weight": self._factors.start(client)} | starts

    def _weighted_weight_change(self, weights: Sequence[float]) -> torch.Tensor:
        if self._factors is not None:
            return self._factors.weighted_change(weights)
        assert self._tensors is not None
        return self._tensors.weighted_change(self._base_weight, weights)

    def _unfold(self, factors: LowRank) -> None:
        """From factors to a matrix for each client."""
        everybody = range(self._clients)
        tensors = self._tensors = ClientTensors(
            self._recipe, torch.stack([factors.weights(client) for client in everybody])
        )
        if tensors.momentum is not None:
            tensors.momentum = torch.stack([factors.momentum(client) for client in everybody])
        if tensors.start is not None:
            tensors.start = torch.stack([factors.start(client) for client in everybody])
        tensors.push = factors.push
        self._factors = None
