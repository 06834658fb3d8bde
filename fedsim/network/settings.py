"""The ``network`` section of a scenario: what the air and the wires are like."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fedsim.errors import Misfit
from fedsim.network.disciplines.channel import Discipline
from fedsim.network.disciplines.dedicated import Dedicated
from fedsim.network.disciplines.fair import Fair
from fedsim.network.disciplines.serial import Serial
from fedsim.network.packets import Loss, Transport
from fedsim.radio.settings import RadioSettings
from fedsim.settings import Count, NonNegative, OneOf, Positive, PositiveOrInfinite, Settings, key_rule

__all__ = ["CellSettings", "LinkSettings", "NetworkSettings"]


def _usual_discipline(cell: dict[str, Any]) -> Discipline:
    """As is usual for the radio."""
    usual = getattr(cell.get("radio"), "usual_discipline", "serial")  # a class of the user's may not have been loaded
    return Fair() if usual == "fair" else Serial()


def _word_of_today(word: object) -> object:
    """What an older or a likely word means. Raises `ValueError` where it is for another key."""
    if word == "tdd":
        raise ValueError(
            "'tdd' is said by the radio: profiles of TDD have it in their rates, and radios with signal-to-noise "
            "ratios take a pattern (tdd: {slots: DDDSU, ...}); leave duplex out"
        )
    return "shared" if word == "half" else word


class CellSettings(Settings):
    """The air around one base station, shared by the sensors attached to it."""

    radio: Annotated[RadioSettings, OneOf("radios")]
    """The rate of each sensor in each direction."""
    duplex: Annotated[Literal["full", "shared"], BeforeValidator(_word_of_today)] = "full"
    """full: uplink and downlink are two channels (FDD, and TDD, whose rates contain the division); shared: one channel
    for both, as in HFedMS. Half-duplex devices are another matter: `devices.classes.NAME.duplex`."""
    carriers: Count = 1
    """Equal carriers, or narrowbands, of each channel. One device uses one at a time: shares are parts of one."""
    discipline: Annotated[Discipline, OneOf("disciplines")] = Field(default_factory=_usual_discipline)
    """How those who send at the same time share the air; left out, as is usual for the radio: fair for profiles of
    technologies and for rates from signal-to-noise ratios, serial for plain rates."""
    delay_s: NonNegative = 0.0
    """Fixed delay of every message over the air, after its last bit was sent."""
    loss: Loss = Loss()
    """Random loss of packets over the air."""

    @key_rule
    def _time_is_divided_once(self) -> None:
        if self.duplex == "shared" and getattr(self.radio, "divides_time", False):
            problem = (
                "shared (half, as it was called) makes the two directions take turns, and the radio's rates contain "
                "that already (TDD), so it would be counted twice; leave duplex out"
            )
            raise Misfit(problem, "duplex")

    @key_rule
    def _who_never_waits_needs_no_carriers(self) -> None:
        if self.carriers > 1 and isinstance(self.discipline, Dedicated):
            problem = (
                f"{self.carriers} make no difference where nobody waits for anybody (dedicated); leave carriers out, "
                "or write discipline: {name: fair}"
            )
            raise Misfit(problem, "carriers")


class LinkSettings(Settings):
    """A wired link: full duplex. A rate or delay in the topology goes first."""

    rate_bps: PositiveOrInfinite
    """Rate of each direction; ``.inf`` for unlimited."""
    delay_s: NonNegative = 0.0
    """Propagation delay."""
    discipline: Annotated[Discipline, OneOf("disciplines")] = Serial()
    """How those who send in one direction at the same time share the wire."""
    loss: Loss = Loss()
    """Random loss of packets on the wire."""

    @key_rule
    def _wires_know_no_device_classes(self) -> None:
        if isinstance(self.discipline, Fair) and self.discipline.weights:
            problem = (
                "weights are by device class, and a wire carries them all alike; leave them out, or give them to cells"
            )
            raise Misfit(problem, "discipline", "weights")


class NetworkSettings(Settings):
    """What the air and the wires are like."""

    cell: CellSettings
    """Every cell, unless it has an entry of its own under ``cells``."""
    cells: dict[str, CellSettings] = Field(default_factory=dict)
    """Cells of single base stations, by the station's name."""
    server: str | None = None
    """The node that holds the global model: a cloud, an edge server or a base station; left out, the first cloud."""
    link: LinkSettings | None = None
    """Every wired link for which the topology gives no rate of its own."""
    transport: Transport = Transport()
    """How messages are cut into packets."""
    max_transfer_s: Positive = 3600.0
    """A remark before the run says where a whole model takes a device longer than this over the air, alone; nothing
    else depends on it."""
    late_transfers: Literal["finish", "cancel"] = "finish"
    """What a device does whose round is over: finish work and transfers, keeping the air busy, or give both up."""
