"""How long LTE-M takes for its transport blocks: cycles of control message, data and acknowledgement, in subframes.

A device that sends or receives (half duplex) does one cycle after the other. B blocks are sent R times each; control
messages and acknowledgements are repeated C times:

    down  a = max(C + R + 4, C + 2 + B R)      first subframe of the acknowledgements
          cycle = a + C acknowledgements + 1
    up    d = max(C + 3, C B + 1)              first subframe of the data
          cycle = d + B R + 1

Data begins two subframes after the last control message down and four up, the acknowledgement four after its block, and
the device needs a subframe to switch (TS 36.213 clauses 7.1.11, 7.3, 8.0; TS 36.211 clause 6.2.5). There is one
acknowledgement a block, or one for four blocks with bundling (Release 14). As the four subframes are fixed, B is 3 at
most without bundling, and 1 where blocks are repeated. A device that does both at once (full duplex) is held back by
its H processes only:

    cycle = max(H R, C + R + C + 7) for H blocks down, max(H R, C + R + 6) up

Leaves out subframes that are not valid for LTE-M, gaps in long transmissions, and frequency hopping.

>>> 3 / half_duplex_down(3, 1, 1), 3 / half_duplex_up(3, 1, 1), round(10 / half_duplex_down(10, 1, 1, bundled=4), 4)
(0.3, 0.375, 0.5882)
>>> 8 / full_duplex_down(8, 1, 1), 10 / full_duplex_down(10, 1, 1), 8 / full_duplex_up(8, 1, 1)
(0.8, 1.0, 1.0)
"""

from __future__ import annotations

import math

__all__ = ["full_duplex_down", "full_duplex_up", "half_duplex_down", "half_duplex_up"]

TO_DOWN_DATA, TO_UP_DATA, TO_ANSWER = 1, 3, 3
"""Subframes between."""
SWITCH = 1


def half_duplex_down(blocks: int, repetitions: int, control: int, *, bundled: int = 1) -> int:
    """Subframes of a cycle, with an acknowledgement for so many *bundled* blocks."""
    first_end = control + TO_DOWN_DATA + repetitions
    last_end = control + TO_DOWN_DATA + blocks * repetitions
    answers_from = max(first_end + TO_ANSWER, last_end + SWITCH)
    return answers_from + math.ceil(blocks / bundled) * control + SWITCH


def half_duplex_up(blocks: int, repetitions: int, control: int) -> int:
    """Subframes of a cycle."""
    data_from = max(control + TO_UP_DATA, blocks * control + SWITCH)
    return data_from + blocks * repetitions + SWITCH


def full_duplex_down(processes: int, repetitions: int, control: int) -> int:
    """Subframes for a block of each process; three between an acknowledgement and the next control message."""
    round_trip = control + TO_DOWN_DATA + repetitions + TO_ANSWER + control + TO_ANSWER
    return max(processes * repetitions, round_trip)


def full_duplex_up(processes: int, repetitions: int, control: int) -> int:
    """Subframes for a block of each process; three between the data and the next control message."""
    return max(processes * repetitions, control + TO_UP_DATA + repetitions + TO_ANSWER)
