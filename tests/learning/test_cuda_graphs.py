"""A CUDA graph is recorded in the order that CUDA asks for; on a CUDA device it does again what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch

from fedsim.learning.executors.batched import cuda_graphs
from fedsim.learning.executors.batched.cuda_graphs import CudaRecorder


class Watched:
    """Stands in for `torch.cuda`, and writes down what happens."""

    def __init__(self) -> None:
        self.happened: list[Any] = []
        self.now = "outside"
        watched = self

        class Stream:
            def __init__(self, name: str = "own") -> None:
                self.name = name

            def wait_stream(self, other: Stream) -> None:
                watched.happened.append(f"{self.name} waits for {other.name}")

        class CUDAGraph:
            def replay(self) -> None:
                watched.happened.append("played")

        self.Stream, self.CUDAGraph = Stream, CUDAGraph
        self.current_stream = lambda: Stream("outside")
        self.graph_pool_handle = lambda: "pool"

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        before, self.now = self.now, stream.name
        try:
            yield
        finally:
            self.now = before

    @contextmanager
    def graph(self, graph: Any, *, pool: str, stream: Any) -> Iterator[None]:
        """Does not go back to the stream before if the work has failed, as torch's does not."""
        before, self.now = self.now, f"{stream.name}, recorded in {pool}"
        yield
        self.now = before


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    watched = Watched()
    for name in ("Stream", "CUDAGraph", "current_stream", "graph_pool_handle", "stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, getattr(watched, name))
    cuda_graphs._stream.cache_clear()
    yield watched
    cuda_graphs._stream.cache_clear()


def test_work_is_done_once_beside_and_then_recorded(watched: Watched) -> None:
    def work() -> int:
        watched.happened.append(f"work, {watched.now}")
        return len(watched.happened)

    made, play = CudaRecorder().record(work)
    play()
    assert watched.happened == [
        "own waits for outside",
        "work, own",
        "work, own, recorded in pool",
        "outside waits for own",
        "played",
    ]
    assert made == 3  # by the second one: its memory is what the graph fills


@pytest.mark.parametrize("failing", [1, 2])
def test_after_a_failure_work_goes_on_outside(watched: Watched, failing: int) -> None:
    def work() -> None:
        watched.happened.append("work")
        if watched.happened.count("work") == failing:
            raise RuntimeError("not permitted")

    with pytest.raises(RuntimeError, match="not permitted"):
        CudaRecorder().record(work)
    assert watched.now == "outside"
    assert watched.happened[-1] == "outside waits for own"


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
def test_on_a_device_it_does_again_what_was_recorded() -> None:
    recorder = CudaRecorder()
    x = torch.ones(8, 8, device="cuda")
    recorded = {power: recorder.record(partial(torch.linalg.matrix_power, x, power)) for power in (2, 3)}
    for value in (1.0, 0.5):
        x.fill_(value)
        for power, (product, play) in recorded.items():
            play()
            assert torch.equal(product, torch.linalg.matrix_power(x, power))
