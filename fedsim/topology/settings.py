"""What a scenario writes below `topology` becomes a `Topology` here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated

from pydantic import Strict

from fedsim.errors import Misfit
from fedsim.settings import MOST_DEVICES, Component, Name, NonNegative, PositiveOrInfinite, Real, Settings
from fedsim.topology.graph import Topology

__all__ = ["Name", "Position", "TopologySettings", "WireSettings", "refuse_too_many"]

Position = Annotated[tuple[Real, Real], Strict(False)]
"""x and y in metres, a YAML list of two; its items stay strict."""


class WireSettings(Settings):
    """What a wire is like; what is left out takes the scenario's default, `network.link`."""

    rate_bps: PositiveOrInfinite | None = None
    """Rate in bit/s (`.inf` for no limit)."""
    delay_s: NonNegative | None = None
    """Propagation delay in seconds."""


class TopologySettings(Component, ABC):
    """A description of a network, from which it is built; the base of what is registered under "topologies"."""

    @abstractmethod
    def build(self) -> Topology:
        """The network. Raises `UserError` when what is described cannot be one."""

    def key_of(self, node: str) -> tuple[str, ...]:
        """The way to the key that describes *node*, for messages; ``()`` where it has none of its own."""
        return ()


def refuse_too_many(things: str, how_many: int, *key: str) -> None:
    """Raise `Misfit` when a network of so many *things*, all in all, is more than can be simulated."""
    if how_many > MOST_DEVICES:
        raise Misfit(f"makes {how_many:,} {things} in all, and at most {MOST_DEVICES:,} are simulated; lower it", *key)
