"""Clients that train together, in one process for each core."""

from __future__ import annotations

from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.torch_executor import TorchExecutor

__all__ = ["Batched"]


class Batched(TorchExecutor):
    """Clients of a round trained together, with one product for all on large layers, in one process for each core."""

    trainer = BatchedTrainer
    arithmetic = "batched"
    torch_devices = ("cpu", "cuda")
    parallel = True
