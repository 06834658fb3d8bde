"""A device's samples by the simulated clock: which positions are there, which a training takes, which are lost.

The clock knows positions only; what stands there is learning's affair. Left out: sensors that stop measuring while
their device is down or out of reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fedsim.data.captures import Capture
from fedsim.data.stream.settings import Arrival, StreamSettings

__all__ = ["MiniBatchBuffer", "StreamBuffer"]

ROUNDING = 1e-9  # of a number of samples: an arrival in this very instant counts


@dataclass(slots=True)
class StreamBuffer:
    """One device's stream. A capture is taken when training begins, and consumed when it has ended."""

    settings: StreamSettings
    consumed: int = 0
    """Samples used so far, each counted once for every fresh capture that it was in."""
    missed: int = 0
    """Samples overwritten before any training took them, up to the last capture consumed."""
    _next: int = 0
    """Position of the first sample that has not been used."""
    _forgotten: int = 0
    """Position of the first sample that the device has not forgotten."""
    _kept: tuple[int, Capture] | None = field(default=None)
    """The block of rounds that the last capture was for, and the capture."""

    def capture(self, now_s: float, round_number: int) -> Capture:
        """What a training that begins now would use. Nothing is consumed.

        It is the oldest fresh samples in the buffer, and those that come next when there are too few.
        """
        block = self._block(round_number)
        if self._kept is not None and self._kept[0] == block:
            return self._kept[1]
        first, drift = max(self._next, self._forgotten), self.settings.drift
        if self.settings.arrival is not None:
            first = max(first, _arrived(self.settings.arrival, now_s) - self.settings.arrival.buffer_samples)
        mixture = None
        if drift is not None:
            mixture = drift.mixture(float(round_number - 1) if drift.by == "rounds" else now_s)
        return Capture(first, self.settings.samples, mixture)

    def wait_s(self, capture: Capture, now_s: float) -> float:
        """Seconds from now until all samples of *capture* have arrived."""
        arrival = self.settings.arrival
        if arrival is None:
            return 0.0
        last = capture.first + capture.samples - arrival.buffered_at_start
        return max(last / arrival.samples_per_s - now_s, 0.0)

    def consume(self, capture: Capture, round_number: int) -> None:
        """A training on *capture* has ended."""
        block = self._block(round_number)
        if self._kept is None or self._kept != (block, capture):
            self.missed += capture.first - self._next
            self.consumed += capture.samples
            self._next = capture.first + capture.samples
            self._kept = block, capture

    def forget(self, now_s: float) -> None:
        """The device loses what it holds: the samples in its buffer, and the capture that it keeps for a block."""
        self._kept = None
        if self.settings.arrival is not None:
            self._forgotten = _arrived(self.settings.arrival, now_s)

    def _block(self, round_number: int) -> int:
        return (round_number - 1) // self.settings.refresh_rounds


@dataclass(slots=True)
class MiniBatchBuffer(StreamBuffer):
    """The stream of a device that is asked for one mini-batch again and again, by way of what it reports of it.

    A mini-batch that was captured is the device's next one until a training has used it: who is not chosen offers the
    same again. ``settings.refresh_rounds`` is 1.
    """

    _next_one: Capture | None = None

    def capture(self, now_s: float, round_number: int) -> Capture:
        """The device's next mini-batch."""
        if self._next_one is None:
            self._next_one = StreamBuffer.capture(self, now_s, round_number)
        return self._next_one

    def consume(self, capture: Capture, round_number: int) -> None:
        """A training on *capture* has ended."""
        StreamBuffer.consume(self, capture, round_number)
        self._kept = self._next_one = None

    def forget(self, now_s: float) -> None:
        """The device loses what it holds, its next mini-batch too."""
        StreamBuffer.forget(self, now_s)
        self._next_one = None


def _arrived(arrival: Arrival, now_s: float) -> int:
    """Samples that have arrived: the (p + 1)-th after the start comes (p + 1) / rate seconds after it."""
    return arrival.buffered_at_start + math.floor(arrival.samples_per_s * now_s + ROUNDING)
