"""The reference: the plain loop in this process, on one thread."""

from __future__ import annotations

from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.torch_executor import TorchExecutor

__all__ = ["Serial"]


class Serial(TorchExecutor):
    """Plain PyTorch training of one client after the other on one CPU thread."""

    trainer = PlainTrainer
    arithmetic = "plain-5"
