"""A message on a channel keeps its own account: what has been sent, what it took, what is left."""

from __future__ import annotations

from flows import Note
from simpy import Environment


def test_what_has_all_been_sent_is_on_no_channel_and_needs_nothing_more() -> None:
    flow = Note(Environment(), 4.0, share=0.5)
    flow.ticket = 7
    flow.book(1.0)
    flow.book_all()
    assert flow.ticket < 0
    assert (flow.need_s, flow.share_sent, flow.spent_s) == (0.0, 1.0, 2.0)
