"""One tensor for each client of a group: weights that are small, or that have changed too much for factors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedsim.learning.executors.batched.recipe import Recipe

__all__ = ["ClientTensors"]


class ClientTensors:
    """``value[c]`` is client *c*'s; momentum, start and push are kept only where the recipe needs them."""

    def __init__(self, recipe: Recipe, value: torch.Tensor) -> None:
        """*value* is (clients, ...), and this object's own from now on."""
        self._recipe = recipe
        self.value = value
        self.momentum = torch.zeros_like(value) if recipe.momentum else None
        self.start = value.clone() if recipe.keeps_start else None
        self.push = torch.zeros_like(value) if recipe.pushes else None
        self._held: list[tuple[int | slice, torch.Tensor]] = []

    @classmethod
    def copies(cls, recipe: Recipe, base: torch.Tensor, clients: int) -> ClientTensors:
        """Everybody starts from *base*."""
        return cls(recipe, base.unsqueeze(0).repeat(clients, *[1] * base.dim()))

    def begin(self, client: int) -> None:
        """A new training of *client* begins: no momentum yet, and this is where it starts."""
        if self.momentum is not None:
            self.momentum[client].zero_()
        if self.start is not None:
            self.start[client].copy_(self.value[client])

    def take(self, clients: int | slice, gradient: torch.Tensor) -> None:
        """Step along the loss's *gradient*, which may be overwritten; hold it if the objective has to see it first."""
        if self._recipe.linear:
            self._step(clients, gradient)
        else:
            self._held.append((clients, gradient))

    def gradients(self) -> list[torch.Tensor]:
        """The gradients held, live, by client."""
        found: dict[int, torch.Tensor] = {}
        for clients, gradient in self._held:
            if isinstance(clients, slice):
                found.update(enumerate(gradient))
            else:
                found[clients] = gradient
        return [found[client] for client in sorted(found)]

    def release(self) -> None:
        """Step along the gradients held."""
        for clients, gradient in self._held:
            self._step(clients, gradient)
        self._held.clear()

    def _step(self, clients: int | slice, gradient: torch.Tensor) -> None:
        recipe, value = self._recipe, self.value[clients]
        if self.push is not None:
            gradient.add_(self.push[clients])
        if recipe.pull:
            assert self.start is not None
            gradient.add_(value - self.start[clients], alpha=recipe.pull)
        if recipe.weight_decay:
            gradient.add_(value, alpha=recipe.weight_decay)
        if self.momentum is not None:
            gradient = self.momentum[clients].mul_(recipe.momentum).add_(gradient)
        value.add_(gradient, alpha=-recipe.learning_rate)

    def weighted_change(self, base: torch.Tensor, weights: Sequence[float]) -> torch.Tensor:
        """``sum of weights[c] (value[c] - base)``, in the order of clients."""
        total = (self.value[0] - base).mul_(weights[0])
        for client, weight in enumerate(weights[1:], start=1):
            total.add_(self.value[client] - base, alpha=weight)
        return total
