"""Torch's own random numbers, for dropout, from a random stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from fedsim.kernel.streams import Stream

__all__ = ["torch_draws"]


@contextmanager
def torch_draws(stream: Stream, torch_device: str) -> Iterator[None]:
    """Within, torch's own random numbers (for dropout) are of a random stream beside *stream*; outside they go on."""
    seed = replace(stream, purpose=f"{stream.purpose}/torch").generator().integers(2**63)
    on_cuda = torch_device == "cuda"
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if on_cuda else []):
        torch.default_generator.manual_seed(int(seed))
        if on_cuda:
            torch.cuda.manual_seed(int(seed))
        yield
