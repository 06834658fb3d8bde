"""What travels between a server and its clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fedsim.learning.graph import Handle
from fedsim.learning.learner import Model

__all__ = ["Message"]


class Message(NamedTuple):
    """Models, and how large they are on the wire."""

    models: Mapping[str, Model]
    """By name: "model", or what of it is sent, and whatever else goes with it; without learning they are empty."""
    bytes: float
    """Declared: known before anything is learned."""
    measured: Handle | None = None
    """More of them, which depend on values: a number that is asked for when the message is sent."""
