"""Packets of a Perfetto trace, one after the other: tracks, slices and counters. Needs the library perfetto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedsim.errors import UserError

__all__ = ["MARK", "Packets"]

SEQUENCE = 1
"""All packets are of one, whose interned names are valid to the end."""
PACKETS_AT_ONCE = 20_000
MARK = "a timeline by fedsim trace"
"""The description of the first track, by which a file is known again."""


class Packets:
    """Hands packets to *write*, some thousands at once. Raises `UserError` when the library is not installed."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        try:
            from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
        except ImportError:
            problem = "timelines need the library perfetto"
            raise UserError(f"{problem}; install it: pip install 'perfetto>=0.59'") from None
        self._proto: Any = proto
        self._write = write
        self._trace: Any = proto.Trace()
        self._tracks = 0
        self._names: dict[str, int] = {}
        self._begun = False

    def track(self, name: str, parent: int = 0, counts: str | None = None) -> int:
        """A new track, or one that *counts* something in this unit; returns its number."""
        self._tracks += 1
        descriptor = self._packet().track_descriptor
        descriptor.uuid, descriptor.name = self._tracks, name
        if self._tracks == 1:
            descriptor.description = MARK
        if parent:
            descriptor.parent_uuid = parent
        if counts is not None:
            descriptor.counter.unit_name = counts
        return self._tracks

    def begin(self, track: int, at_ns: int, name: str, flow: int = 0) -> None:
        """A slice begins; it belongs to a *flow*, if that is not 0."""
        packet = self._packet()
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = len(self._names) + 1
            interned = packet.interned_data.event_names.add()
            interned.iid, interned.name = number, name
        packet.timestamp = at_ns
        event = packet.track_event
        event.type, event.track_uuid, event.name_iid = self._proto.TrackEvent.TYPE_SLICE_BEGIN, track, number
        if flow:
            event.flow_ids.append(flow)

    def end(self, track: int, at_ns: int) -> None:
        """The slice that began last on the track, and has not ended, ends."""
        packet = self._packet()
        packet.timestamp = at_ns
        packet.track_event.type, packet.track_event.track_uuid = self._proto.TrackEvent.TYPE_SLICE_END, track

    def count(self, track: int, at_ns: int, value: int) -> None:
        """From now on the counter has this value."""
        packet = self._packet()
        packet.timestamp = at_ns
        event = packet.track_event
        event.type, event.track_uuid, event.counter_value = self._proto.TrackEvent.TYPE_COUNTER, track, value

    def flush(self) -> None:
        """Hand over what has not been."""
        self._write(self._trace.SerializeToString())
        self._trace.Clear()

    def _packet(self) -> Any:
        if len(self._trace.packet) >= PACKETS_AT_ONCE:
            self.flush()
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = SEQUENCE
        flags = self._proto.TracePacket
        packet.sequence_flags = (
            flags.SEQ_NEEDS_INCREMENTAL_STATE if self._begun else flags.SEQ_INCREMENTAL_STATE_CLEARED
        )
        self._begun = True
        return packet
