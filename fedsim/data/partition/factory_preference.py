"""Factories that make different things: the clients of one see the same classes often.

Left out: sizes that differ; `quantity_skew` and `dirichlet` have them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.partition.settings import Concentration, Labels, PartitionSettings, dealt_by_class
from fedsim.data.raw_dataset import Clients

__all__ = ["FactoryPreference", "served_by_lot"]


class FactoryPreference(PartitionSettings):
    """Clients of one factory prefer the same classes: a Dirichlet mixture per factory, one about it per client.

    With q the shares of the C classes in all training samples, factory f prefers p_f ~ Dir(alpha C q), and each of its
    clients p_k ~ Dir(concentration p_f): the mean is p_f, the variance of a class p_f (1 - p_f) / (concentration + 1).
    (A two-level Dirichlet, as of Teh et al., *Hierarchical Dirichlet Processes*, JASA 2006, for finitely many classes.)

    All have equally many samples, up to one; the first (samples modulo clients) clients hold the one more. Everybody
    wishes for as many samples as it has room for, multinomially by p_k. Where more are wished of a class than are left,
    chance says which wishes are met; who is left with room wishes again, by p_k over the classes of which something is
    left, and by what is left of them where p_k has nothing there. So all samples are dealt, each once; the more the
    factories want the same, the more they get of what they did not want.
    """

    name: Literal["factory_preference"] = "factory_preference"
    alpha: Concentration = 0.5
    """Concentration of a factory's preference: the smaller, the fewer classes it sees."""
    concentration: Concentration = 20.0
    """Concentration of a client's preference about its factory's: the larger, the more alike are the clients of one."""

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Unseen clients prefer what their factory prefers."""
        y = labels.classes()
        stock = np.unique(y, return_counts=True)[1]
        factory = clients.all_factories
        base = self.alpha * len(stock) * stock / len(y)
        of_factory = np.array([_dirichlet(base, rng) for _ in range(int(factory.max()) + 1)])
        preference = np.array([_dirichlet(self.concentration * of_factory[each], rng) for each in factory])
        room = len(y) // clients.total + (np.arange(clients.total) < len(y) % clients.total)
        return dealt_by_class(y, served_by_lot(preference, room, stock, rng).T, rng)


def served_by_lot(
    preference: NDArray[np.float64], room: NDArray[np.int64], stock: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """(clients, classes) samples: each client as many as it has *room* for, all of the *stock*.

    *preference* is (clients, classes), and rows add up to 1; *room* and *stock* add up to the same number. In each turn
    all is dealt, or one more class is used up, so that there are no more turns than classes.
    """
    dealt = np.zeros(preference.shape, np.int64)
    room, stock = room.copy(), stock.copy()
    while stock.any():
        wishes = rng.multinomial(room, _among(preference, stock))
        for label in np.flatnonzero(wishes.sum(0) > stock):
            wishes[:, label] = rng.multivariate_hypergeometric(wishes[:, label], stock[label], method="marginals")
        dealt += wishes
        room -= wishes.sum(1)
        stock -= wishes.sum(0)
    return dealt


def _among(preference: NDArray[np.float64], stock: NDArray[np.int64]) -> NDArray[np.float64]:
    """*preference* over the classes that are left; by what is left where there is none."""
    wanted = np.where(stock > 0, preference, 0.0)
    wanted = np.where(wanted.sum(1, keepdims=True) > 0, wanted, stock.astype(np.float64))
    wanted /= wanted.max(1, keepdims=True)  # the tiniest preferences do not vanish
    shares: NDArray[np.float64] = wanted / wanted.sum(1, keepdims=True)
    return shares


def _dirichlet(alpha: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Dirichlet shares, where *alpha* may be 0 in places: nothing is there."""
    shares = np.zeros(len(alpha))
    shares[alpha > 0] = rng.dirichlet(alpha[alpha > 0])
    return shares
