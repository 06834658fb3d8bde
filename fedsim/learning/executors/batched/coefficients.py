"""What matrices are multiplied with in each client's weights, at the start of its training, and in its momentum.

A step is linear, so these numbers take the same step as the weights.
"""

from __future__ import annotations

import torch

from fedsim.learning.executors.batched.recipe import Recipe

__all__ = ["Coefficients"]


class Coefficients:
    """So many numbers for each client, (clients, numbers).

    In float64: one number for each client and row costs nothing, and a product of many factors stays exact.
    """

    def __init__(self, recipe: Recipe, like: torch.Tensor, clients: int, numbers: int, *, base: float) -> None:
        """*base* is what each number is in the base; *like* says on which torch device they are."""
        self._recipe, self._base = recipe, base
        self.value = torch.full((clients, numbers), base, dtype=torch.float64, device=like.device)
        self.momentum = torch.zeros_like(self.value)
        self.start = self.value.clone()

    def begin(self, client: int) -> None:
        """A new training of *client* begins: no momentum yet, and this is where it starts."""
        self.momentum[client].zero_()
        self.start[client] = self.value[client]

    def restart(self, client: int) -> None:
        """Give *client* the base again."""
        self.value[client].fill_(self._base)

    def step(self, clients: int, gradient: slice = slice(0)) -> None:
        """One step of the first *clients*, in whose gradient the numbers at *gradient* are 1 and the others 0."""
        recipe, active = self._recipe, slice(clients)
        value = self.value[active]
        step = recipe.weight_decay * value + recipe.pull * (value - self.start[active])
        step[:, gradient] += 1
        step = self.momentum[active].mul_(recipe.momentum).add_(step)
        value -= recipe.learning_rate * step
