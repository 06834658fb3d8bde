"""What a scenario writes below `topology` becomes a `Topology` here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated

from annotated_types import MinLen
from pydantic import Strict

from fedsim.settings import Component
from fedsim.topology.graph import Topology

__all__ = ["Name", "Position", "TopologySettings"]

Name = Annotated[str, MinLen(1)]
"""The name of a node or of a device class."""

Position = Annotated[tuple[float, float], Strict(False)]
"""x and y in metres, a YAML list of two; its items stay strict."""


class TopologySettings(Component, ABC):
    """A description of a network, from which it is built; the base of what is registered under "topologies"."""

    @abstractmethod
    def build(self) -> Topology:
        """The network. Raises `UserError` when what is described cannot be one."""

    def key_of(self, node: str) -> tuple[str, ...]:
        """The way to the key that describes *node*, for messages; ``()`` where it has none of its own."""
        return ()
