"""Proximal policy optimisation (Schulman et al., arXiv:1707.06347, 2017, Eqs. 7 and 9), as SPATL's agent is trained.

The policy is Gaussian, with a deviation of its own that is not learned. Returns are the discounted rewards of whole
episodes, normalised over those that are learned from together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch.optim.adam import adam

__all__ = ["DEVIATION", "Adam", "Step", "entropy", "log_probability", "loss", "normalised_returns"]

DEVIATION = 0.5
"""Of actions from their mean."""
GAMMA = 0.99
CLIP = 0.2
VALUE_WEIGHT = 0.5
ENTROPY_WEIGHT = 0.01
LEARNING_RATE = 3e-4
BETAS = 0.9, 0.999


class Step(NamedTuple):
    """What is kept of a step to learn from."""

    action: torch.Tensor
    log_probability: torch.Tensor
    """By the policy that has taken it."""
    reward: float
    last: bool
    """Of its episode."""


def log_probability(actions: torch.Tensor, means: torch.Tensor) -> torch.Tensor:
    """(...) of *actions*, (..., N)."""
    apart = ((actions - means) / DEVIATION).square() / 2 + math.log(DEVIATION * math.sqrt(2 * math.pi))
    return -apart.sum(dim=-1)


def entropy(convolutions: int) -> float:
    """Of the policy, whatever its mean."""
    return convolutions * (0.5 + math.log(DEVIATION * math.sqrt(2 * math.pi)))


def normalised_returns(steps: Sequence[Step]) -> torch.Tensor:
    """(steps,) with mean 0 and deviation 1: of each step the rewards from then on, discounted, to its episode's end."""
    found: list[float] = []
    so_far = 0.0
    for step in reversed(steps):
        so_far = step.reward + GAMMA * (0.0 if step.last else so_far)
        found.append(so_far)
    returns = torch.tensor(found[::-1], dtype=torch.float32)
    return (returns - returns.mean()) / (returns.std() + 1e-7)


def loss(
    log_probabilities: torch.Tensor, before: torch.Tensor, values: torch.Tensor, returns: torch.Tensor, spread: float
) -> torch.Tensor:
    """The mean over steps of ``-min(r A, clip(r) A) + 0.5 (V - R)^2 - 0.01 H``, with ``A = R - V``.

    ``r`` is the ratio of the probabilities now and *before*, and H, the policy's entropy, *spread*.
    """
    advantages = returns - values.detach()
    ratios = (log_probabilities - before).exp()
    clipped = ratios.clamp(1 - CLIP, 1 + CLIP)
    gained = torch.minimum(ratios * advantages, clipped * advantages)
    return (-gained + VALUE_WEIGHT * (values - returns).square() - ENTROPY_WEIGHT * spread).mean()


class Adam:
    """`torch.optim.Adam`, by its own function: to make the optimiser itself loads PyTorch's compiler."""

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        """They are changed in place."""
        self._parameters = list(parameters)
        self._means, self._squares = ([torch.zeros_like(one) for one in parameters] for _ in range(2))
        self._steps = [torch.zeros(()) for _ in parameters]

    def minimise(self, what: Callable[[], torch.Tensor]) -> None:
        """One step down the gradient of *what*."""
        for one in self._parameters:
            one.requires_grad_(True)
        gradients = torch.autograd.grad(what(), self._parameters)
        for one in self._parameters:
            one.requires_grad_(False)
        adam(
            self._parameters,
            list(gradients),
            self._means,
            self._squares,
            [],
            self._steps,
            foreach=False,
            fused=False,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=LEARNING_RATE,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
