"""The ``network`` section of a scenario: what the air and the wires are like."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedsim.errors import Misfit
from fedsim.network.disciplines.channel import Discipline
from fedsim.network.disciplines.fair import Fair
from fedsim.network.disciplines.serial import Serial
from fedsim.network.packets import Loss, Transport
from fedsim.radio.settings import RadioSettings
from fedsim.settings import NonNegative, OneOf, PositiveOrInfinite, Settings, key_rule

__all__ = ["CellSettings", "LinkSettings", "NetworkSettings"]


class CellSettings(Settings):
    """The air around one base station, shared by the sensors attached to it."""

    radio: Annotated[RadioSettings, OneOf("radios")]
    """The rate of each sensor in each direction."""
    duplex: Literal["full", "half"] = "full"
    """full: uplink and downlink apart; half: one channel for both."""
    discipline: Annotated[Discipline, OneOf("disciplines")] = Serial()
    """How those who send at the same time share the air."""
    delay_s: NonNegative = 0.0
    """Fixed delay of every message over the air, after its last bit was sent."""
    loss: Loss = Loss()
    """Random loss of packets over the air."""


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
    late_transfers: Literal["finish", "cancel"] = "finish"
    """What a device does whose round is over: finish work and transfers, keeping the air busy, or give both up."""
