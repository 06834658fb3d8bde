"""A queue of flows that needs no memory while it is empty: a large network has hundreds of thousands of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedsim.network.disciplines.channel import Flow

__all__ = ["FlowQueue"]


class FlowQueue:
    """Flows, first come, first out; each of them may also leave from the middle, in the same short time.

    A flow itself notes who is ahead of it and who is behind it, so it can be in one queue at a time.
    """

    __slots__ = ("first", "last")

    def __init__(self) -> None:
        self.first: Flow | None = None
        self.last: Flow | None = None

    def append(self, flow: Flow) -> None:
        """It is the last one now."""
        last = self.last
        flow.ahead, flow.behind = last, None
        if last is None:
            self.first = flow
        else:
            last.behind = flow
        self.last = flow

    def remove(self, flow: Flow) -> None:
        """It leaves; those behind it move up."""
        ahead, behind = flow.ahead, flow.behind
        if ahead is None:
            self.first = behind
        else:
            ahead.behind = behind
        if behind is None:
            self.last = ahead
        else:
            behind.ahead = ahead
        flow.ahead = flow.behind = None

    def __iter__(self) -> Iterator[Flow]:
        flow = self.first
        while flow is not None:
            behind = flow.behind
            yield flow
            flow = behind
