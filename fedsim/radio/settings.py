"""A radio says how fast one device can send and receive, now and later; it knows nothing of who else is on the air.

Leaves out sharing, delays and losses (the cell's matter), devices that move, and handover.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.kernel.streams import Streams
from fedsim.settings import Component

__all__ = ["Duplex", "PartialCoverage", "RadioSettings", "Rates", "RatesOfMany", "SensorSite", "UpDown"]

T = TypeVar("T")

Duplex = Literal["full", "half"]
"""Whether a device can send and receive at once, on two frequencies, or does one of them at a time (half-duplex FDD: TS
36.211 clause 4.1)."""


class UpDown(NamedTuple, Generic[T]):
    """One thing for each direction."""

    uplink: T
    downlink: T


@dataclass(frozen=True, slots=True)
class Rates:
    """One device's full rates in its cell, alone on the air."""

    uplink_bps: float
    """0: no coverage now."""
    downlink_bps: float
    """0: no coverage now."""
    uplink_share: float = 1.0
    """Largest share (above 0, at most 1) of one carrier that the device can use alone at that rate; the carrier at full
    use would carry ``uplink_bps / uplink_share``. Matters only where devices share the air fairly."""
    downlink_share: float = 1.0
    """The same of the downlink."""


@dataclass(frozen=True, eq=False, slots=True)
class RatesOfMany:
    """The rates of many devices, each array in the order of the devices: what `Rates` are for one."""

    uplink_bps: NDArray[np.float64]
    downlink_bps: NDArray[np.float64]
    uplink_share: NDArray[np.float64]
    downlink_share: NDArray[np.float64]

    def __iter__(self) -> Iterator[Rates]:
        """Those of each device."""
        columns = (self.uplink_bps, self.downlink_bps, self.uplink_share, self.downlink_share)
        return map(Rates, *(column.tolist() for column in columns))


@dataclass(frozen=True, slots=True)
class SensorSite:
    """What a radio may know of one sensor."""

    sensor: str
    """Its name."""
    index: int
    """Its position among the topology's sensors."""
    station: int
    """Its base station's position among the topology's base stations, whether or not these have sensors."""
    distance_m: float | None
    """To its base station, on the ground; None when one of the two stands nowhere in particular."""
    streams: Streams
    """Where chance comes from: ``streams("radio/...", index, use).generator()``."""


class RadioSettings(Component):
    """What is registered under "radios".

    A `Misfit` that a method raises names a key of the radio's own.
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        """A class with its own `rates` or `changes` is asked for each device, though its parent works out many."""
        super().__pydantic_init_subclass__(**more)
        own = vars(cls)  # a method that the class has, and its parent's batch would pass over, decides for both
        if "rates" in own and "rates_of" not in own:
            cls.rates_of = RadioSettings.rates_of  # type: ignore[method-assign]
        if "changes" in own and "changes_together" not in own:
            cls.changes_together = RadioSettings.changes_together  # type: ignore[method-assign]

    @abstractmethod
    def rates(self, site: SensorSite) -> Rates:
        """The device's rates at time zero. Raises `UserError` when they cannot be known."""

    def rates_of(self, sites: Sequence[SensorSite]) -> Iterable[Rates]:
        """The same `rates` of many devices, in their order: what a network asks for."""
        return map(self.rates, sites)

    def changes(self, site: SensorSite) -> Iterator[tuple[float, Rates]]:
        """What the rates become later: (seconds, rates), in strictly increasing time; may be endless.

        Every call tells the same from the beginning. By default there is none.
        """
        return iter(())

    def changes_together(self, sites: Sequence[SensorSite]) -> Iterator[tuple[float, RatesOfMany]] | None:
        """The same `changes` of many devices of one seed, for a radio whose devices all change in the same instants.

        None by default: each device has its own instants, and `changes` is asked. Where it is not None, it alone is.
        """
        return None

    @property
    def announces(self) -> bool:
        """Whether it has any `changes` to tell."""
        kind = type(self)
        together, alone = RadioSettings.changes_together, RadioSettings.changes
        return kind.changes is not alone or kind.changes_together is not together

    @property
    def usual_discipline(self) -> str:
        """The discipline of cells that name none: ``fair`` for a technology whose base stations share the air out."""
        return "serial"

    @property
    def device_duplex(self) -> Duplex:
        """What devices can do that are of a class which does not say it."""
        return "full"

    @property
    def divides_time(self) -> bool:
        """Whether the rates contain already that the two directions take turns on one frequency (TDD)."""
        return False

    @property
    def excludes_uncovered(self) -> bool:
        """Whether a device that never has an uplink and a downlink together is left out, rather than refused."""
        return False

    def why_no_coverage(self, site: SensorSite) -> str | None:
        """Why the device never has an uplink and a downlink together, and the way out; None when it has."""
        return None

    def check_sensors(self, sensors: Collection[str]) -> None:
        """Raise `UserError` when the radio names a sensor that is none of *sensors*, the topology's."""


class PartialCoverage(RadioSettings):
    """A radio that may not reach every device."""

    out_of_coverage: Literal["refuse", "exclude"] = "refuse"
    """What to do with a device that never has an uplink and a downlink together: refuse the scenario, or exclude the
    device, which then never takes part."""

    @property
    def excludes_uncovered(self) -> bool:
        """As the key says."""
        return self.out_of_coverage == "exclude"
