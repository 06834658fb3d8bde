"""Some questions need no samples at all: what a network carries follows from how many there are and how large."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval

from fedsim.data.dataset import FederatedDataset
from fedsim.data.raw_dataset import Clients, Generators
from fedsim.data.settings import DatasetSettings
from fedsim.settings import Count

__all__ = ["Declared"]


class Declared(DatasetSettings):
    """Numbers only, for network studies: how many samples a client has, and how large one is; nothing to train on."""

    name: Literal["declared"] = "declared"
    samples_per_client: Count
    """Training samples of every client."""
    sample_bytes: Annotated[float, Interval(ge=1e-3, le=1e9)] | None = None
    """Bytes of one raw sample and its label; needed only where raw samples are sent."""

    def load(self, clients: Clients, generator: Generators) -> FederatedDataset:
        """Equal clients. Nothing is drawn.

        >>> data = Declared(samples_per_client=600, sample_bytes=785).load(Clients(3), generator=lambda purpose: None)
        >>> data.client_samples.tolist(), data.raw_bytes(0), data.x
        ([600, 600, 600], 471000.0, None)
        """
        return FederatedDataset(
            name=self.name,
            classes=None,
            sample_shape=None,
            sample_bytes=self.sample_bytes,
            client_samples=np.full(clients.count, self.samples_per_client, np.int64),
            stream=self.stream,
        )
