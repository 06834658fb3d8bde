"""The plain loop in several processes: the same bits as in one, sooner."""

from __future__ import annotations

from fedsim.learning.executors.serial import Serial

__all__ = ["Processes"]


class Processes(Serial):
    """Plain PyTorch training in one process for each core, with the same results as serial."""

    parallel = True
