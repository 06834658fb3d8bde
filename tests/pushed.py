"""An objective whose term is a push and a pull, and what it has in common with others that remember a way."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch

from fedsim.learning.objectives.objective import Given, Objective

__all__ = ["Pushed", "way_so_far"]

Tensors = dict[str, torch.Tensor]


class Pushed(Objective):
    """A client is pushed by its start and the way that it remembers, in equal measure, and pulled to its start."""

    name: Literal["pushed"] = "pushed"
    remembers: ClassVar[tuple[str, ...]] = ("way",)
    reads_start: ClassVar[bool] = True
    pushes: ClassVar[bool] = True
    strength: float
    mu: float = 0.0

    @property
    def pull(self) -> float:
        return self.mu

    def push(self, given: Given) -> Tensors:
        way = given.state.get("way", given.start)
        return {name: self.strength * (start + way[name]) for name, start in given.start.items()}

    def add_gradient(self, gradients: Any, weights: Any, given: Given) -> None:
        push = self.push(given)
        for name, gradient in gradients.items():
            gradient.add_(push[name]).add_(weights[name] - given.start[name], alpha=self.mu)

    def remember(self, weights: Any, given: Given) -> dict[str, Tensors]:
        return way_so_far(weights, given)


def way_so_far(weights: Any, given: Given) -> dict[str, Tensors]:
    """What those remember who are pushed by it."""
    moved = {name: weights[name] - given.start[name] for name in given.start}
    before = given.state.get("way", {})
    return {"way": {name: change + before[name] for name, change in moved.items()} if before else moved}
