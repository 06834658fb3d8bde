"""A data set is chosen by name; its settings say how it is made, and make it for any number of clients."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import NDArray

from fedsim.data.dataset import FederatedDataset
from fedsim.data.raw_dataset import Clients, Generators
from fedsim.data.stream.settings import StreamSettings
from fedsim.settings import Component

__all__ = ["DatasetSettings"]


class DatasetSettings(Component):
    """Base of what is registered under "datasets"."""

    stream: StreamSettings | None = None
    """How samples come and go; left out, every client keeps all of its samples from the start."""

    def text(self, stored: NDArray[Any]) -> str:
        """One stored sample of ids as text for people: the characters that they stand for, or else the ids."""
        return " ".join(map(str, stored.reshape(-1)))

    @abstractmethod
    def load(self, clients: Clients, generator: Generators) -> FederatedDataset:
        """The samples, spread over *clients*; the same for equal settings and equal streams.

        A purpose of *generator* that is asked for again gives the same numbers again. What is drawn for one purpose
        must not depend on how much another one drew: the test set stays the same whatever the partition. Raises
        `UserError` when there are too few samples for so many clients.
        """
