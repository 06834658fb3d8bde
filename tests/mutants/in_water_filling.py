"""Faults in sharing among flows of several kinds: the water level, the classes that change sides, the exact clock."""

from __future__ import annotations

from mutants.fault import CHANNELS, FAIR, Fault, exact, theory

WATER = "fedsim/network/disciplines/water_filling.py"
EXACT = exact("fair")
MANY = "tests/network/test_many_shares.py"
FAR_WEIGHTS = (
    "tests/network/test_exact_channels.py::test_so_does_a_fair_channel_with_weights_as_far_apart_as_settings_allow[0.0]"
)

FAULTS = (
    Fault(
        "a channel that is shared by several kinds is 5 % slower",
        WATER,
        "exact(self.since_s)) * self._left // self._weights",
        "exact(self.since_s)) * self._left * 95 // (100 * self._weights)",
        theory("test_weights_divide_a_fair_hop_as_fayolle_mitrani_and_iasnogorodski_say"),
        by_each=True,
    ),
    Fault(
        "each kind has one part, not each message",
        WATER,
        "            self._weights += flows * one.weight_exact",
        "            self._weights += (flows > 0) * one.weight_exact",
        (FAIR, EXACT),
    ),
    Fault(
        "what a narrow one leaves is lost",
        WATER,
        "        while self._fulls < len(order) and self._fills(order[self._fulls][2]):\n",
        "        while False:\n",
        (FAIR, EXACT),
    ),
    Fault(
        "what a narrow one uses is given to others too",
        WATER,
        "            self._left -= flows * one.share_exact\n",
        "            pass\n",
        (FAIR, EXACT),
    ),
    Fault(
        "a pause does not stop the clocks of several kinds",
        WATER,
        "        self._left += (capacity - self.capacity) * exact(1.0)\n",
        "",
        (CHANNELS, EXACT),
    ),
    Fault(
        "what was sent before a stop among several kinds is forgotten",
        WATER,
        "        flow.book(self.served_s(flow, now_s))\n",
        "",
        (CHANNELS, EXACT),
    ),
    Fault(
        "progress among several kinds stands still between arrivals",
        WATER,
        "self._reading_at(now_s)) - flow.since",
        "self._reading) - flow.since",
        (FAIR, EXACT),
    ),
    Fault(
        "a class that changes sides loses what its flows were given",
        WATER,
        "        one.clock_s = self._clock_s(one, self.since_s, self._reading)\n",
        "",
        (MANY, EXACT),
    ),
    Fault(
        "a class that changes sides waits for its old end",
        WATER,
        "        self._count(one, one.flows)\n"
        "        one.anchor = self.since_s if one.full else self._reading\n"
        "        self._wait_for_next(one)\n",
        "        self._count(one, one.flows)\n        one.anchor = self.since_s if one.full else self._reading\n",
        (MANY, EXACT),
    ),
    Fault(
        "only one class changes sides at a time",
        WATER,
        "        while self._fulls and not self._fills",
        "        if self._fulls and not self._fills",
        (MANY, EXACT),
    ),
    Fault(
        "a class that comes among full ones is open",
        WATER,
        "        one.full = place < self._fulls\n        self._fulls += one.full\n",
        "",
        (MANY, EXACT),
    ),
    Fault(
        "the next of a class that is left behind is not waited for",
        WATER,
        "            if first:\n                self._wait_for_next(one)\n        else:",
        "            if False:\n                self._wait_for_next(one)\n        else:",
        (MANY, EXACT),
    ),
    Fault(
        "a shorter one of a class among several does not come first",
        WATER,
        "            if first:\n                self._wait_for_next(own)\n        self",
        "            if False:\n                self._wait_for_next(own)\n        self",
        (MANY, EXACT),
    ),
    Fault(
        "void entries among classes are kept for ever",
        WATER,
        "if len(heap) > 2 * len(self._classes) + 32:",
        "if False:",
        (MANY,),
    ),
    Fault(
        "void entries among classes count",
        WATER,
        "while heap and heap[0][2].entry is not heap[0]:",
        "while False:",
        (MANY, EXACT),
    ),
    Fault(
        "the virtual clock of several kinds is a rounded number",
        WATER,
        "        self._reading = self._reading_at(now_s)\n",
        "        self._reading = int(float(self._reading_at(now_s)))\n",
        (MANY, FAR_WEIGHTS),
    ),
    Fault(
        "units are too large for a heavy one beside a light one",
        WATER,
        "UNITS, UNIT = 2.0**180, 2.0**-180",
        "UNITS, UNIT = 2.0**60, 2.0**-60",
        (MANY, FAR_WEIGHTS),
    ),
    Fault(
        "a crowd of many kinds never ends",
        WATER,
        "        return bool(self._classes)\n",
        "        return True\n",
        (MANY,),
    ),
)
