"""How long local training takes on a device: simulated, never measured on the machine that simulates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from fedsim.kernel.streams import Stream
from fedsim.settings import Component

__all__ = ["ComputeSettings"]


class ComputeSettings(Component):
    """What is registered under "computes"."""

    @property
    def varies(self) -> bool:
        """Whether the same work takes one device longer in one training than in another."""
        return False

    @property
    def takes_time(self) -> bool:
        """Whether any work takes any time."""
        return True

    @abstractmethod
    def seconds(self, samples: float, flops_per_sample: Callable[[], float], device: Stream, training: Stream) -> float:
        """Seconds to train on *samples* samples (each pass counts), each costing ``flops_per_sample()`` operations.

        Other work is told in samples too: in those that could be trained on with as many operations.
        *device* names what is fixed for the device, *training* what is new in each training.
        """
