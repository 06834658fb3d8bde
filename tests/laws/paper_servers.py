"""Servers of the baselines, each written from the formulas of its paper: numbers in, numbers out.

A model is a mapping of names to tensors in double precision. Parameters are stepped; running statistics, which no
paper speaks of, are averaged with the weights of the models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Weights = dict[str, torch.Tensor]


@dataclass
class Local:
    """What a client has made of the model that it received."""

    weights: Weights
    samples: int
    steps: int
    a: float
    """``||a_i||_1``: the sum of the weights that its gradients have in its change, in learning rates."""
    accuracy: float
    """The share of its samples that it told right while it was training on them."""
    control_change: Weights = field(default_factory=dict)
    """``c_i+ - c_i``."""


@dataclass
class Server:
    """What all servers have: the names of running statistics, and their memory."""

    statistics: Collection[str]
    clients: int
    """N: all that there are."""
    classes: int
    keys: Mapping[str, Any]
    weighting: str = "samples"
    memory: dict[str, Weights] = field(default_factory=dict)

    def shares(self, locals: Sequence[Local]) -> list[float]:
        """``p_k``: ``n_k`` over the sum of the samples of those who have arrived; or all equal."""
        counts = [local.samples if self.weighting == "samples" else 1 for local in locals]
        return [count / sum(counts) for count in counts]

    def next(self, w: Weights, locals: Sequence[Local]) -> Weights:
        """The next model."""
        shares = self.of_statistics(w, locals)
        averaged = {
            name: sum(p * local.weights[name] for p, local in zip(shares, locals, strict=True))
            for name in self.statistics
        }
        return {**self.stepped(self.trained(w), locals), **averaged}

    def trained(self, weights: Weights) -> Weights:
        """The parameters alone."""
        return {name: tensor for name, tensor in weights.items() if name not in self.statistics}

    def of_statistics(self, w: Weights, locals: Sequence[Local]) -> list[float]:
        return self.shares(locals)

    def mean_change(self, w: Weights, locals: Sequence[Local]) -> Weights:
        """``D = sum of p_k (w_k - w)``."""
        return {
            name: sum(p * (local.weights[name] - start) for p, local in zip(self.shares(locals), locals, strict=True))
            for name, start in w.items()
        }

    def stepped(self, w: Weights, locals: Sequence[Local]) -> Weights:
        """The next parameters."""
        raise NotImplementedError


class AvgM(Server):
    """Hsu et al., arXiv:1909.06335: ``v = beta v + D, w = w + eta v``."""

    def stepped(self, w: Weights, locals: Sequence[Local]) -> Weights:
        change, beta, eta = self.mean_change(w, locals), self.keys.get("beta", 0.9), self.keys.get("learning_rate", 1.0)
        velocity = self.memory.setdefault("v", {name: torch.zeros_like(tensor) for name, tensor in w.items()})
        for name in w:
            velocity[name] = beta * velocity[name] + change[name]
        return {name: w[name] + eta * velocity[name] for name in w}


@dataclass
class Adaptive(Server):
    """Reddi et al., ICLR 2021, algorithm 2: m and v, then ``w = w + eta m / (sqrt(v) + tau)``; v begins at tau^2."""

    beta1: float = 0.9
    number: int = 0

    def second(self, v: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def stepped(self, w: Weights, locals: Sequence[Local]) -> Weights:
        keys = {"learning_rate": 0.01, "beta1": self.beta1, "beta2": 0.99, "tau": 1e-3, **self.keys}
        eta, beta1, beta2, tau = (keys[name] for name in ("learning_rate", "beta1", "beta2", "tau"))
        v0 = keys.get("v0", tau**2)
        change = self.mean_change(w, locals)
        m = self.memory.setdefault("m", {name: torch.zeros_like(tensor) for name, tensor in w.items()})
        v = self.memory.setdefault("v", {name: torch.full_like(tensor, v0) for name, tensor in w.items()})
        self.number += 1
        made = {}
        for name in w:
            m[name] = beta1 * m[name] + (1 - beta1) * change[name]
            v[name] = self.second(v[name], change[name])
            first, second = m[name], v[name]
            if keys.get("bias_correction"):  # Kingma and Ba, ICLR 2015, algorithm 1
                first, second = first / (1 - beta1**self.number), second / (1 - beta2**self.number)
            made[name] = w[name] + eta * first / (torch.sqrt(second) + tau)
        return made


@dataclass
class Adagrad(Adaptive):
    """``v = v + D^2``; no momentum in the paper's experiments."""

    beta1: float = 0.0

    def second(self, v: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        return v + change**2


class Adam(Adaptive):
    """``v = beta2 v + (1 - beta2) D^2``."""

    def second(self, v: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        beta2 = self.keys.get("beta2", 0.99)
        return beta2 * v + (1 - beta2) * change**2


class Yogi(Adaptive):
    """``v = v - (1 - beta2) D^2 sign(v - D^2)``."""

    def second(self, v: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        return v - (1 - self.keys.get("beta2", 0.99)) * change**2 * torch.sign(v - change**2)


class Nova(Server):
    """Wang et al., NeurIPS 2020, section 4: ``d_i = (w - w_i) / a_i, w = w - tau_eff sum of p_i d_i``."""

    def stepped(self, w: Weights, locals: Sequence[Local]) -> Weights:
        shares = self.shares(locals)
        tau_eff = sum(p * local.a for p, local in zip(shares, locals, strict=True))
        made = {}
        for name, start in w.items():
            d = sum(p * (start - local.weights[name]) / local.a for p, local in zip(shares, locals, strict=True))
            made[name] = start - tau_eff * d
        return made


class Controlled(Server):
    """Karimireddy et al., ICML 2020, algorithm 1: ``x = x + eta_g mean(y - x), c = c + (1/N) sum of (c_i+ - c_i)``."""

    def control(self, w: Weights) -> Weights:
        """c, which begins at zero."""
        return self.memory.setdefault("c", {name: torch.zeros_like(one) for name, one in self.trained(w).items()})

    def stepped(self, w: Weights, locals: Sequence[Local]) -> Weights:
        change, control = self.mean_change(w, locals), self.control(w)
        self.memory["c"] = {
            name: c + sum(local.control_change[name] for local in locals) / self.clients for name, c in control.items()
        }
        return {name: w[name] + self.keys.get("learning_rate", 1.0) * change[name] for name in w}


class Ida(Server):
    """Yeganeh et al., DCL 2020: ``a_k`` is one over the distance to the mean, times ``p_k``, over the accuracy."""

    def factors(self, w: Weights, locals: Sequence[Local]) -> list[float]:
        parameters = [self.trained(local.weights) for local in locals]
        rows = torch.stack([torch.cat([one.flatten() for one in weights.values()]) for weights in parameters])
        apart = (rows - rows.mean(0)).abs()
        distance = apart.sum(1) if self.keys.get("norm", "l1") == "l1" else apart.pow(2).sum(1).sqrt()
        counts = []
        for p, d, local in zip(self.shares(locals), distance.tolist(), locals, strict=True):
            least = self.keys.get("least_accuracy", 1 / self.classes)
            accuracy = max(least, local.accuracy) if self.keys.get("accuracy") else 1.0
            counts.append(p / (d + self.keys.get("epsilon", 1e-8)) / accuracy)
        assert all(math.isfinite(count) for count in counts)
        return [count / sum(counts) for count in counts]

    def of_statistics(self, w: Weights, locals: Sequence[Local]) -> list[float]:
        return self.factors(w, locals)

    def stepped(self, w: Weights, locals: Sequence[Local]) -> Weights:
        factors = self.factors(w, locals)
        return {name: sum(a * local.weights[name] for a, local in zip(factors, locals, strict=True)) for name in w}


SERVERS: dict[str, Callable[..., Server]] = {
    "fedavgm": AvgM,
    "fedadagrad": Adagrad,
    "fedadam": Adam,
    "fedyogi": Yogi,
    "fednova": Nova,
    "scaffold": Controlled,
    "ida": Ida,
    "ida_fedavg": Ida,
    "ida_intrac": Ida,
}
"""By the names of the protocols."""
WEIGHTING = {"scaffold": "uniform", "ida": "uniform", "ida_intrac": "uniform"}
"""Of those that do not go by samples, unless the scenario says so."""


def server_of(protocol: Mapping[str, Any], statistics: Collection[str], *, clients: int, classes: int) -> Server:
    """The server of a protocol that the scenario describes so."""
    name = protocol["name"]
    keys = dict(protocol.get("server", {})) | ({"accuracy": True} if name == "ida_intrac" else {})
    weighting = protocol.get("weighting", WEIGHTING.get(name, "samples"))
    return SERVERS[name](statistics, clients, classes, keys, weighting)
