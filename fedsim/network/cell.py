"""The air around one base station, and how each of its devices meets it."""

from __future__ import annotations

from fedsim.network.attachment import DeviceKind
from fedsim.network.half_duplex import HalfDuplex
from fedsim.network.hop import Hop, Link
from fedsim.network.settings import CellSettings
from fedsim.radio.settings import Rates

__all__ = ["Cell"]


class Cell:
    """The air around one base station."""

    __slots__ = ("link", "settings")

    def __init__(self, link: Link, settings: CellSettings) -> None:
        self.link = link
        self.settings = settings

    def hops(self, rates: Rates, kind: DeviceKind) -> tuple[Hop, Hop]:
        """The air as one device meets it: its uplink and its downlink."""
        weight = self.settings.discipline.weight(kind.name)
        half = (kind.duplex or self.settings.radio.device_duplex) == "half"
        turn = HalfDuplex() if half else None
        link = self.link
        up = Hop(link, True, 0.0, weight=weight, half_duplex=turn)
        down = Hop(link, False, 0.0, weight=weight, half_duplex=turn)
        up.set_rate(rates.uplink_bps, rates.uplink_share, rates.uplink_format)
        down.set_rate(rates.downlink_bps, rates.downlink_share, rates.downlink_format)
        return up, down
