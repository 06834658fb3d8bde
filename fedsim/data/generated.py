"""What generated data sets have in common: factories and devices that prefer some classes, and samples made on demand.

With classes c and base frequencies b_c, all in all

    p_f ~ Dirichlet(C a_factory b)       what factory f has
    p_k ~ Dirichlet(C a_device p_f)      what device k of factory f has
    n_k = max(least, round(m exp(s z_k - s^2 / 2))), z_k ~ Normal(0, 1)
    y_ki ~ p_k, independent, i = 1..n_k

An infinite concentration a means that there is no such preference: p_f = b, p_k = p_f. Every device draws from a stream
of its own, so what it has does not depend on how many others there are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.raw_dataset import Clients, Generators, Later
from fedsim.quick import check_work

__all__ = ["GeneratedDevice", "Made", "drawn_labels", "made_for", "number_of_samples", "preference"]

DeviceOf = Callable[[NDArray[np.float64], np.random.Generator], "GeneratedDevice"]
"""A device, from its factory's frequencies and its own generator."""


def preference(expected: NDArray[np.float64], concentration: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """(classes,) frequencies ~ Dirichlet(classes * *concentration* * *expected*); *expected* when it is infinite.

    The mean is *expected* = q and the variance of class c is q_c (1 - q_c) / (classes concentration + 1). A class that
    is not expected at all stays away.

    >>> preference(np.array([0.5, 0.5, 0.0]), math.inf, np.random.default_rng(1)).tolist()
    [0.5, 0.5, 0.0]
    """
    if math.isinf(concentration):
        return expected
    some = expected > 0
    if some.all():
        return rng.dirichlet(len(expected) * concentration * expected)
    drawn = np.zeros_like(expected)
    drawn[some] = rng.dirichlet(len(expected) * concentration * expected[some])
    return drawn


def number_of_samples(mean: float, spread: float, rng: np.random.Generator, *, least: int) -> int:
    """n_k: lognormal with *mean*, where *spread* is the standard deviation of its logarithm; at least *least*.

    >>> number_of_samples(165, 0.0, np.random.default_rng(1), least=10)
    165
    """
    return max(least, round(mean * math.exp(spread * rng.standard_normal() - spread**2 / 2)))


def drawn_labels(frequencies: NDArray[np.float64], samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(samples,) labels, independent, by inversion of the cumulated *frequencies*.

    >>> drawn_labels(np.array([0.0, 1.0, 0.0]), 3, np.random.default_rng(1)).tolist()
    [1, 1, 1]
    """
    cumulated = frequencies.cumsum()
    drawn: NDArray[np.int64] = cumulated.searchsorted(cumulated[-1] * rng.random(samples), side="right")
    return drawn


class GeneratedDevice(ABC):
    """A device before it measures anything."""

    labels: NDArray[np.int64]
    """(samples,) the class of each sample."""

    @abstractmethod
    def samples(self) -> NDArray[Any]:
        """(samples, ...) of one device, as stored; asked for once."""


@dataclass(frozen=True, eq=False)
class Made:
    """What was made for all clients, unseen ones last."""

    x: Later
    labels: NDArray[np.int64]
    """(samples,)"""
    owner: NDArray[np.int64]
    """(samples,) from 0, by client."""


def made_for(
    clients: Clients,
    generator: Generators,
    device: DeviceOf,
    *,
    prefix: str,
    base: NDArray[np.float64],
    factory_preference: float,
    sample_shape: tuple[int, ...],
    dtype: np.dtype[Any],
    most_in_seconds: tuple[int, str],
) -> Made:
    """Devices, one after the other, with labels now and samples later.

    Draws from ``PREFIX/factory/F`` for each factory, from ``PREFIX/device/K`` for each client and from
    ``PREFIX/unseen/K`` for each unseen one. *most_in_seconds*: how many samples commands make that are to answer in
    seconds, and what these are called; for more of them `UserError` is raised there.
    """
    factories = [
        preference(base, factory_preference, generator(f"{prefix}/factory/{factory}"))
        for factory in range(int(clients.factory.max()) + 1)
    ]
    purposes = [f"device/{k}" for k in range(clients.count)] + [f"unseen/{k}" for k in range(clients.unseen)]
    factory_of = clients.all_factories.tolist()

    def one(number: int) -> GeneratedDevice:
        return device(factories[factory_of[number]], generator(f"{prefix}/{purposes[number]}"))

    labels = [one(number).labels for number in range(clients.total)]
    begin = np.array([0, *map(len, labels)]).cumsum()
    devices = _Devices(one, begin, sample_shape, dtype, most_in_seconds, prefix.rpartition("/")[2])
    return Made(
        Later((int(begin[-1]), *sample_shape), dtype, devices.all_samples, devices.some_samples),
        np.concatenate(labels),
        np.repeat(np.arange(clients.total), np.diff(begin)),
    )


@dataclass(frozen=True, eq=False)
class _Devices:
    """All of them, one after the other."""

    device: Callable[[int], GeneratedDevice]
    """Makes one, anew each time."""
    begin: NDArray[np.int64]
    """(devices + 1,) where the samples of each begin, and where the last ones end."""
    sample_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    most_in_seconds: tuple[int, str]
    where: str

    def all_samples(self) -> NDArray[Any]:
        """(samples, *sample_shape) of all."""
        check_work(int(self.begin[-1]), *self.most_in_seconds, self.where)
        x = np.empty((self.begin[-1], *self.sample_shape), self.dtype)
        for number, (first, last) in enumerate(pairwise(self.begin.tolist())):
            x[first:last] = self.device(number).samples()
        return x

    def some_samples(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """(ids, *sample_shape) of those that are asked for."""
        x = np.empty((len(ids), *self.sample_shape), self.dtype)
        owner = np.searchsorted(self.begin, ids, side="right") - 1
        for number in np.unique(owner).tolist():
            own = owner == number
            x[own] = self.device(number).samples()[ids[own] - self.begin[number]]
        return x
