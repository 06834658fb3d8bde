"""Clients that all sample the same world, equally long; and those that know a few classes only.

Both are of McMahan et al., *Communication-Efficient Learning of Deep Networks from Decentralized Data*, AISTATS 2017,
section 3.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.partition.settings import Labels, PartitionSettings, require
from fedsim.data.raw_dataset import Clients
from fedsim.settings import Count

__all__ = ["Iid", "Shards"]


class Iid(PartitionSettings):
    """Equal shares at random: sizes differ by one sample at most.

    The "IID" split of McMahan et al., *Communication-Efficient Learning of Deep Networks from Decentralized Data*,
    AISTATS 2017, section 3. The first (samples modulo clients) clients hold the one sample more.
    """

    name: Literal["iid"] = "iid"

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Clients in turn, mixed."""
        return rng.permutation(np.arange(len(labels.y)) % clients.total)


class Shards(PartitionSettings):
    """A few classes per client: samples sorted by label, cut into equal shards, some dealt to each client at random.

    McMahan et al. cut MNIST into 200 shards of 300 and deal two to each of 100 clients, so that most clients have
    two digits. A shard that crosses from one class to the next holds both. Shards differ by one sample at most when
    their number does not divide the samples.
    """

    name: Literal["shards"] = "shards"
    shards_per_client: Count = 2
    """Shards dealt to each client."""

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Samples of one class are in random order before the cut. Raises `UserError` for more shards than samples."""
        y = labels.classes()
        shards = clients.total * self.shards_per_client
        require(
            shards,
            len(y),
            f"shards_per_client={self.shards_per_client} for each of {clients.total} clients makes that many shards; "
            "lower one of them",
        )
        mixed = rng.permutation(len(y))
        by_label = mixed[np.argsort(y[mixed], kind="stable")]
        dealt = rng.permutation(np.arange(shards) % clients.total)
        owner = np.empty(len(y), np.int64)
        owner[by_label] = dealt[np.arange(len(y)) * shards // len(y)]
        return owner
