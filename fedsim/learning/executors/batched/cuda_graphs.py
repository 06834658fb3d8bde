"""Recorders of what is computed on CUDA devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch

__all__ = ["CudaRecorder"]

_Made = TypeVar("_Made")


class CudaRecorder:
    """Records CUDA graphs (CUDA C++ Programming Guide, "CUDA Graphs"), as PyTorch's notes on them say it is done.

    All of them take memory from one pool: they are played one after the other, and what one makes is copied before the
    next one is played.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._last: Any = None  # graph: a pool is gone with the last one that takes memory from it

    def record(self, work: Callable[[], _Made]) -> tuple[_Made, Callable[[], None]]:
        """Do *work* once, so that all that is made at first use is there, then record it."""
        outside, stream = torch.cuda.current_stream(), _stream()
        graph = torch.cuda.CUDAGraph()
        stream.wait_stream(outside)
        try:
            with torch.cuda.stream(stream):
                work()
                with torch.cuda.graph(graph, pool=self._pool, stream=stream):
                    made = work()
        finally:
            outside.wait_stream(stream)
        self._last = graph
        return made, graph.replay


@cache
def _stream() -> Any:
    """One for all, as libraries keep memory for each."""
    stream: Any = torch.cuda.Stream
    return stream()
