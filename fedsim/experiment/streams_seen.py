"""What became of streams of samples in a run: how often each device went through its own, and what it missed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedsim.protocols.world import Client

__all__ = ["stream_columns"]


def stream_columns(clients: Sequence[Client]) -> dict[str, float]:
    """Columns of a summary; none when no client has a stream.

    ``passes_mean`` and ``passes_max``: samples used over samples held, over all clients; beyond 1 a device has seen
    its finite local set more than once. ``missed_samples``: overwritten before any training took them, all clients
    together.
    """
    passes = [client.stream.consumed / client.samples for client in clients if client.stream is not None]
    if not passes:
        return {}
    return {
        "passes_mean": math.fsum(passes) / len(passes),
        "passes_max": max(passes),
        "missed_samples": sum(client.stream.missed for client in clients if client.stream is not None),
    }
