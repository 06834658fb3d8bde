"""A radio says how fast one device can send and receive, now and later; it knows nothing of the cell's other devices.

Leaves out sharing, delays and losses (the cell's matter), devices that move, and handover.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.kernel.streams import Streams
from fedsim.settings import Component, NonNegative, Settings

__all__ = [
    "ANYWHERE",
    "ANY_FORMAT",
    "Around",
    "Duplex",
    "PartialCoverage",
    "Place",
    "RadioPath",
    "RadioSettings",
    "Rates",
    "RatesOfMany",
    "TransportFormat",
    "UpDown",
]

T = TypeVar("T")

Duplex = Literal["full", "half"]
"""Whether a device can send and receive at once, on two frequencies, or does one of them at a time (half-duplex FDD: TS
36.211 clause 4.1)."""


class UpDown(NamedTuple, Generic[T]):
    """One thing for each direction."""

    uplink: T
    downlink: T


@dataclass(frozen=True, slots=True)
class TransportFormat:
    """The row of a technology's table that one direction of a link is served with, and what follows from it."""

    row: str = ""
    """What it says: block size, repetitions, modulation."""
    duty: float = 1.0
    """Part of the time in which the device's radio sends, or receives, while the device has its full rate."""
    most_bps: float = math.inf
    """What a device of the category can do at most."""
    block_bits: float = 0.0
    """Bits of a transport block; 0 where messages are not cut into blocks."""
    grant_bits: float = 0.0
    """The least that a message is given of the air: all blocks of a cycle, or one resource block of a slot."""
    repetitions: int = 1
    """How often each block is sent."""
    block_errors: float = 0.0
    """Chance that one block has to be sent again, where that is drawn; the rate contains the mean otherwise."""


ANY_FORMAT = TransportFormat()
"""Of rates that follow from no table."""
ANY_FORMATS: UpDown[Sequence[TransportFormat]] = UpDown((ANY_FORMAT,), (ANY_FORMAT,))


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
    uplink_format: TransportFormat = field(default=ANY_FORMAT, repr=False)
    """What the rate is made of."""
    downlink_format: TransportFormat = field(default=ANY_FORMAT, repr=False)
    """The same of the downlink."""
    coverage_class: int | None = field(default=None, repr=False)
    """0, 1 or 2 from normal to extreme coverage, for a technology that has such classes."""


@dataclass(frozen=True, eq=False, slots=True)
class RatesOfMany:
    """The rates of many devices, each array in the order of the devices: what `Rates` are for one."""

    uplink_bps: NDArray[np.float64]
    downlink_bps: NDArray[np.float64]
    uplink_share: NDArray[np.float64]
    downlink_share: NDArray[np.float64]
    formats: UpDown[Sequence[TransportFormat]] = ANY_FORMATS
    """The rows that there are, in each direction."""
    uplink_row: NDArray[np.intp] | None = None
    """Where in ``formats`` each device's own is; None: the first for all."""
    downlink_row: NDArray[np.intp] | None = None
    """The same of the downlink."""
    coverage_class: NDArray[np.int8] | None = None
    """None where the technology has no such classes."""

    @classmethod
    def of(cls, rates: Iterable[Rates]) -> RatesOfMany:
        """Those of single devices, together."""
        listed = list(rates)
        known: UpDown[dict[TransportFormat, int]] = UpDown({}, {})
        up = [known.uplink.setdefault(one.uplink_format, len(known.uplink)) for one in listed]
        down = [known.downlink.setdefault(one.downlink_format, len(known.downlink)) for one in listed]
        classes = [-1 if one.coverage_class is None else one.coverage_class for one in listed]
        return cls(
            np.array([one.uplink_bps for one in listed]),
            np.array([one.downlink_bps for one in listed]),
            np.array([one.uplink_share for one in listed]),
            np.array([one.downlink_share for one in listed]),
            formats=UpDown(tuple(known.uplink), tuple(known.downlink)),
            uplink_row=np.array(up, np.intp),
            downlink_row=np.array(down, np.intp),
            coverage_class=np.array(classes, np.int8) if any(one >= 0 for one in classes) else None,
        )

    def __len__(self) -> int:
        return len(self.uplink_bps)

    def __iter__(self) -> Iterator[Rates]:
        """Those of each device."""
        columns = (self.uplink_bps, self.downlink_bps, self.uplink_share, self.downlink_share)
        rows = zip(self.formats, (self.uplink_row, self.downlink_row), strict=True)
        formats = (_each_format(known, row, len(self)) for known, row in rows)
        classes = [None] * len(self) if self.coverage_class is None else self.coverage_class.tolist()
        classes = [None if one is None or one < 0 else one for one in classes]
        return map(Rates, *(_alike(column.tolist()) for column in columns), *formats, classes)


def _alike(numbers: list[float]) -> Iterable[float]:
    """The same numbers, equal ones as one object: most devices of a large network have what others have."""
    known: dict[float, float] = {}
    return map(known.setdefault, numbers, numbers)


def _each_format(
    known: Sequence[TransportFormat], row: NDArray[np.intp] | None, devices: int
) -> Iterable[TransportFormat]:
    return [known[0]] * devices if row is None else map(known.__getitem__, row.tolist())


class Place(Settings):
    """Where a device stands, as far as its radio is concerned."""

    height_m: NonNegative | None = None
    """Height of its antenna above the ground; left out, the `device_height_m` of its cell's radio."""
    indoor_m: Annotated[float, Interval(ge=0, le=1000)] | None = None
    """How deep it stands in a building, in metres behind the outer wall; left out, there is no wall on the way that the
    path loss does not contain."""
    extra_loss_db: Annotated[float, Interval(ge=0, le=300)] = 0.0
    """What a cabinet, a pit or a cellar takes away in addition."""


ANYWHERE = Place()


@dataclass(frozen=True, slots=True)
class RadioPath:
    """The way over the air between one device and one base station: what a radio may know of it."""

    sensor: str
    """The device's name."""
    index: int
    """Its position among the topology's sensors."""
    station: int
    """The base station's position among the topology's base stations, whether or not these have sensors."""
    mast: int
    """The position of the first base station that stands at the same place: those on one mast share their shadows."""
    distance_m: float | None
    """On the ground; None when one of the two stands nowhere in particular."""
    streams: Streams
    """Where chance comes from: ``streams("radio/...", index, use).generator()``."""
    position_m: tuple[float, float] | None = None
    """Where the device stands."""
    place: Place = ANYWHERE
    """How high and how deep."""
    around: Around | None = field(default=None, compare=False, repr=False)
    """What knows the other cells; None: nothing does."""


Around = Callable[["RadioSettings", Sequence[RadioPath]], Iterator[tuple[float, UpDown[NDArray[np.float64]]]]]
"""How far other cells lift the noise of a radio's paths: (seconds from when on, decibels), the first at 0."""


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
    def rates(self, path: RadioPath) -> Rates:
        """The device's rates at time zero. Raises `UserError` when they cannot be known."""

    def rates_of(self, paths: Sequence[RadioPath], time_s: float = 0.0) -> RatesOfMany:
        """The rates of many devices, in their order, from *time_s* on until the next change: what a network asks for.

        Of one seed. To ask for a late time takes as long as it takes to tell all changes until then.
        """
        return RatesOfMany.of(self._rates_from(path, time_s) for path in paths)

    def _rates_from(self, path: RadioPath, time_s: float) -> Rates:
        found = self.rates(path)
        for at_s, rates in self.changes(path) if time_s > 0 else ():
            if at_s > time_s:
                break
            found = rates
        return found

    def changes(self, path: RadioPath) -> Iterator[tuple[float, Rates]]:
        """What the rates become later: (seconds, rates), in strictly increasing time; may be endless.

        Every call tells the same from the beginning. By default there is none.
        """
        return iter(())

    def changes_together(self, paths: Sequence[RadioPath]) -> Iterator[tuple[float, RatesOfMany]] | None:
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
        """Whether the rates contain already that the two directions take turns on one frequency: by a key ``tdd``."""
        return getattr(self, "tdd", None) is not None

    @property
    def access_delays_s(self) -> UpDown[float]:
        """What a message of each direction waits for a grant, beside what it waits for others; 0 by default."""
        return UpDown(0.0, 0.0)

    @property
    def excludes_uncovered(self) -> bool:
        """Whether a device that never has an uplink and a downlink together is left out, rather than refused."""
        return False

    def why_no_coverage(self, path: RadioPath) -> str | None:
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
