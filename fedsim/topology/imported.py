"""A graph that another tool wrote, without a word of what a network study needs; the scenario says the rest.

Leaves out links that are faster in one direction than in the other, and mixes of several files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import PrivateAttr, ValidationInfo, model_validator

from fedsim.errors import Misfit, UserError
from fedsim.files import read_text_file
from fedsim.topology.explicit import Explicit, to_explicit
from fedsim.topology.files.drawn import MOST_BYTES
from fedsim.topology.files.network import network
from fedsim.topology.files.settings import DrawnSettings
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import numbered
from fedsim.topology.readers import check_suffix, read_drawn
from fedsim.topology.settings import TopologySettings

__all__ = ["Imported", "self_contained"]


class Imported(DrawnSettings):
    """A graph of another tool, GraphML or JSON, with what the tool leaves unsaid.

    A node is one of `clouds`, or of the kind that `kind_attribute` says, or else of `leaf_kind` or `kind`. Links of
    sensors are air: no rate or delay is read for them. A run folder gets the network written out as `explicit`, so that
    it does not need the file.
    """

    name: Literal["imported"] = "imported"

    _topology: Topology = PrivateAttr()

    def build(self) -> Topology:
        """The network, as the file was when these settings were made."""
        return self._topology

    def written_out(self) -> dict[str, Any]:
        """What `Explicit` takes for the same network; sensors that differ in number only are one entry each station."""
        written = to_explicit(self._topology)
        nodes, count = written["nodes"], self.sensors_per_station
        stations = [name for name, node in nodes.items() if node["kind"] == NodeKind.BASE_STATION]
        if count is None or self.radius_m is not None or any(f"{station}/sensor" in nodes for station in stations):
            return written
        for station in stations:
            alike = [nodes.pop(name) for name in numbered(f"{station}/sensor", count)]
            nodes[f"{station}/sensor"] = {**alike[0], "count": count}
        return written

    @model_validator(mode="after")
    def _read(self, info: ValidationInfo) -> Self:
        path = _folder(info.context) / self.path
        try:
            check_suffix(path)
            text = read_text_file(path, what="a graph file", most_bytes=MOST_BYTES)
            self._topology = network(read_drawn(path, text), self)
        except Misfit:
            raise
        except UserError as error:
            raise Misfit(str(error), "path") from error
        return self


def self_contained(topology: TopologySettings) -> TopologySettings:
    """The same network without a file that it needs: what is `Imported` becomes `Explicit`."""
    return Explicit.model_validate(topology.written_out()) if isinstance(topology, Imported) else topology


def _folder(document: object) -> Path:
    """The folder of the file in which these settings are written, which the validation's context tells.

    The scenario's document has its *source* and, for what was read from another file, that one as its origin.
    """
    location_of, source = getattr(document, "location_of", None), getattr(document, "source", "")
    location = location_of(("topology", "path")) if callable(location_of) else None
    # Without a line, it is the command line's.
    other = location.origin if location is not None and location.line else None
    return Path(other or source).parent
