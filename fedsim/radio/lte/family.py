"""What LTE and LTE-M have in common: subframes of 1 ms, and the way to a grant.

    delay = period / 2 + 1 ms for the request + 3 ms until the grant + 4 ms from the grant to the data

Source: TR 36.912 annex B.2 (device with a connection), TS 36.213 clause 8.0 (four subframes from grant to data).
"""

from __future__ import annotations

from typing import Literal

from fedsim.radio.scheduled import ScheduledRadio

__all__ = ["SUBFRAME_S", "LteFamily"]

SUBFRAME_S = 1e-3
REQUEST, PROCESSING, TO_DATA = 1, 3, 4
"""Subframes."""


class LteFamily(ScheduledRadio):
    """A radio with LTE's subframes."""

    scheduling_request_ms: Literal[1, 2, 5, 10, 20, 40, 80] = 10
    """Milliseconds from one chance of a device to ask for a grant to the next (TS 36.213 table 10.1.5-1)."""

    @property
    def request_delay_s(self) -> float:
        """Until the grant is sent."""
        return (self.scheduling_request_ms / 2 + REQUEST + PROCESSING) * SUBFRAME_S

    @property
    def grant_delay_s(self) -> float:
        """Until the grant is sent, and four subframes to the data."""
        return self.request_delay_s + TO_DATA * SUBFRAME_S

    @property
    def assignment_delay_s(self) -> float:
        """A subframe: data comes together with its control message."""
        return SUBFRAME_S
