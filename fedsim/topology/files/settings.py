"""What a scenario says of a drawn graph: what its attributes mean, and what is added to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from fedsim.errors import Misfit
from fedsim.settings import DeviceCount, NonNegative, Positive, PositiveOrInfinite, Settings, Several, key_rule
from fedsim.topology.files.parts import Direction, Parallel
from fedsim.topology.graph import NodeKind
from fedsim.topology.settings import Name, TopologySettings

__all__ = ["DistanceSettings", "DrawnSettings", "PositionSettings"]

NEEDS = {
    "kinds": "kind_attribute",
    "rate_unit_bps": "rate_attribute",
    "rates": "rate_attribute",
    "delay_unit_s": "delay_attribute",
    "delay_from_distance": "position",
    "radius_m": "sensors_per_station",
}
"""Keys that mean nothing without another one."""

Kind = Annotated[NodeKind, Strict(False)]
Wired = Literal["edge", "base_station"]


class PositionSettings(Settings):
    """Which attributes say where a node stands: two on the globe, or two in a plane."""

    latitude: Name | None = None
    """Degrees north."""
    longitude: Name | None = None
    """Degrees east."""
    x: Name | None = None
    """In units of `unit_m`."""
    y: Name | None = None
    """In units of `unit_m`."""
    unit_m: Positive = 1.0
    """Metres that are 1 of `x` and `y`."""

    @key_rule
    def _one_pair(self) -> None:
        given = [key for key in ("latitude", "longitude", "x", "y") if getattr(self, key) is not None]
        if given not in (["latitude", "longitude"], ["x", "y"]):
            found = " and ".join(given) or "none of them"
            raise ValueError(f"needs latitude and longitude, or x and y, and this has {found}")
        if self.latitude is not None and self.unit_m != 1.0:
            raise Misfit("means nothing with latitude and longitude; remove it", "unit_m")

    @property
    def attributes(self) -> tuple[str, str]:
        """The two attributes."""
        return (self.latitude or self.x or "", self.longitude or self.y or "")


class DistanceSettings(Settings):
    """Delay as the time that light needs from end to end, on the shortest way."""

    speed_m_per_s: Positive = 2.0e8
    """Of the signal; 2e8 is that of light in glass fibre. Lower it where cables take detours."""


class DrawnSettings(TopologySettings):
    """How a drawn graph is read as a network."""

    path: str
    """The graph: a `.graphml` or `.json` file, relative to the file in which this stands."""
    clouds: Several[Name] = ()
    """The nodes that are clouds; the first one holds the global model, unless `network.server` names another."""
    name_attribute: Name | None = None
    """The nodes' attribute that is their name; left out, their ids are."""
    kind: Wired = "base_station"
    """What nodes are of which nothing else is said."""
    leaf_kind: Wired | None = None
    """What such nodes are when they are linked to one other node only; left out, `kind`."""
    kind_attribute: Name | None = None
    """The nodes' attribute that says their kind."""
    kinds: dict[str, Kind] = Field(default_factory=dict)
    """Value of that attribute -> kind; left out, the values are kinds."""
    position: PositionSettings | None = None
    """Where nodes stand; left out, at no particular place."""
    rate_attribute: Name | None = None
    """The links' attribute that is their rate."""
    rate_unit_bps: Positive = 1.0
    """bit/s that are 1 of that attribute: 1e9 where it is in Gbit/s."""
    rates: dict[str, PositiveOrInfinite] = Field(default_factory=dict)
    """Value of that attribute -> rate in bit/s, for values that are no numbers."""
    rate_bps: PositiveOrInfinite | None = None
    """Rate of the wires that have no such attribute, in bit/s. Without `rate_attribute` that is all of them, and left
    out, the scenario's default."""
    delay_attribute: Name | None = None
    """The links' attribute that is their delay."""
    delay_unit_s: Positive = 1.0
    """Seconds that are 1 of that attribute: 1e-3 where it is in milliseconds, 5e-6 where it is a length in km."""
    delay_from_distance: DistanceSettings | None = None
    """Delays from the nodes' positions; `{}` takes the default speed."""
    delay_s: NonNegative | None = None
    """Delay of the wires of which the file says nothing, in seconds. With neither `delay_attribute` nor
    `delay_from_distance` that is all of them, and left out, the scenario's default."""
    sensors_per_station: DeviceCount | None = None
    """So many sensors are added at each base station, called `Vienna/sensor-01` and so on after the station."""
    radius_m: Positive | None = None
    """These sensors stand evenly spread within this distance of their station, in metres; left out, nowhere."""
    device: Name | None = None
    """The device class of all sensors; left out, the scenario's default class."""
    parallel: Parallel = "refuse"
    """What becomes of several links between the same nodes: `fastest` keeps the one with the highest rate (of several
    the one with the shortest delay), `sum` adds the rates and takes the longest delay."""
    directed: Direction = "refuse"
    """What becomes of directed links: `merge` makes one and the one back (which may be missing) one wire."""

    @key_rule
    def _say_what_is_meant(self) -> None:
        for key, other in NEEDS.items():
            default = type(self).model_fields[key].get_default(call_default_factory=True)
            if getattr(self, key) != default and getattr(self, other) is None:
                raise Misfit(f"means nothing without {other}; add that key or remove this one", key)
        if self.delay_attribute is not None and self.delay_from_distance is not None:
            raise Misfit("cannot stand beside delay_attribute; keep one of the two", "delay_from_distance")
