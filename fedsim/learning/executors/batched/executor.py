"""Clients that train together, in one process for each core."""

from __future__ import annotations

from fedsim.learning.executors.batched.support import why_not
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.executors.trainer import Trainer
from fedsim.models.table import ModelTable

__all__ = ["Batched"]


class Batched(TorchExecutor):
    """Clients of a round trained together, with one product for all on large layers, in one process for each core."""

    trainer = BatchedTrainer
    arithmetic = "batched-5"
    torch_devices = ("cpu", "cuda")
    parallel = True

    @classmethod
    def trainer_of(cls, table: ModelTable) -> type[Trainer]:
        """The plain loop, for a model that it has no arithmetic for."""
        return PlainTrainer if why_not(table) else cls.trainer
