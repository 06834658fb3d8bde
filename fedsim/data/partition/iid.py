"""Clients that all sample the same world, equally long."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.partition.settings import Labels, PartitionSettings
from fedsim.data.raw_dataset import Clients

__all__ = ["Iid"]


class Iid(PartitionSettings):
    """Equal shares at random: sizes differ by one sample at most.

    The "IID" split of McMahan et al., *Communication-Efficient Learning of Deep Networks from Decentralized Data*,
    AISTATS 2017, section 3. The first (samples modulo clients) clients hold the one sample more.
    """

    name: Literal["iid"] = "iid"

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Clients in turn, mixed."""
        return rng.permutation(np.arange(len(labels.y)) % clients.total)
