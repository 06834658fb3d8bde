"""Faults in fair sharing: parts of the channel, virtual clocks, and the one alarm."""

from __future__ import annotations

from mutants.fault import CHANNELS, FAIR, Fault, exact, exact_of_several, theory

FAIR_SHARING = "fedsim/network/disciplines/fair.py"
ALIKE = "fedsim/network/disciplines/one_class.py"
EXACT = exact("fair")
EXACT_SEVERAL = exact_of_several("fair")

FAULTS = (
    Fault(
        "a channel that is shared is 5 % slower",
        ALIKE,
        "1.0 if wanted <= self.capacity else self.capacity / wanted",
        "1.0 if wanted <= self.capacity else 0.95 * self.capacity / wanted",
        theory(
            "test_the_mean_sojourn_on_a_fair_hop_does_not_depend_on_the_distribution_of_sizes",
            "test_the_mean_sojourn_on_a_fair_hop_is_in_proportion_to_the_size",
            "test_a_hop_of_which_each_can_use_a_quarter_is_erlangs_queue_of_four",
            "test_a_hop_of_three_carriers_is_erlangs_queue_of_three[M/M/3-PS]",
            "test_a_hop_of_three_carriers_is_erlangs_queue_of_three[M/H/3-PS]",
            "test_a_fair_hop_is_empty_when_a_serial_one_is",
            "test_equal_messages_delay_each_other_equally",
            "test_littles_law_holds_on_every_hop_of_a_line[FairChannel]",
            "test_littles_law_holds_on_every_hop_of_a_line[FairOnThree]",
        ),
        by_each=True,
    ),
    Fault(
        "narrow ones share before they must",
        ALIKE,
        "wanted = self.only.flows * self.only.share",
        "wanted = self.only.flows",
        theory("test_a_hop_of_which_each_can_use_a_quarter_is_erlangs_queue_of_four"),
        by_each=True,
    ),
    Fault(
        "the virtual clock begins anew with every arrival",
        ALIKE,
        "        if not only.flows:\n            only.clock_s = 0.0",
        "        if True:\n            only.clock_s = 0.0",
        (FAIR, EXACT),
    ),
    Fault(
        "the virtual clock is not advanced when somebody comes",
        ALIKE,
        "        only = self.read_clock(now_s)\n        if not only.flows:\n",
        "        only, self.since_s = self.only, now_s\n        if not only.flows:\n",
        (FAIR, EXACT),
    ),
    Fault(
        "the alarm is not set again after a departure",
        FAIR_SHARING,
        "        self._leaving.reverse()\n        self._set_alarm()\n",
        "        self._leaving.reverse()\n",
        (FAIR, EXACT),
    ),
    Fault(
        "the alarm stays where it was when a shorter one comes",
        FAIR_SHARING,
        "if first or self._alarm is None:",
        "if self._alarm is None:",
        (FAIR, EXACT),
    ),
    Fault(
        "the alarm stays where it was when somebody stops",
        FAIR_SHARING,
        "            self._sharing.remove(flow, self.env.now)\n            self._set_alarm()\n",
        "            self._sharing.remove(flow, self.env.now)\n",
        (FAIR, EXACT),
    ),
    Fault(
        "an early alarm lets somebody go",
        FAIR_SHARING,
        "            if due_s > self.env.now:\n",
        "            if False:\n",
        (FAIR, EXACT),
    ),
    Fault(
        "who is due is found by comparing rounded times",
        ALIKE,
        "reading_s = max(self.next_reading_s(), clock_s)",
        "reading_s = clock_s",
        (EXACT,),
    ),
    Fault(
        "roundings add up over departures",
        ALIKE,
        "        reading_s = max(self.next",
        "        self.clock_s = reading_s = max(self.next",
        (FAIR,),
    ),
    Fault(
        "void entries are cleared out of order",
        ALIKE,
        "            heapify(self.queue)\n",
        "",
        (FAIR,),
    ),
    Fault(
        "those who leave together leave in the opposite order",
        FAIR_SHARING,
        "        self._leaving.reverse()\n",
        "",
        (FAIR,),
    ),
    Fault(
        "who was stopped leaves with the others",
        ALIKE,
        "            if ticket in self.void:\n",
        "            if False:\n",
        (FAIR, EXACT),
    ),
    Fault(
        "who is on another channel by now leaves here too",
        ALIKE,
        "            if ticket in self.void:\n",
        "            if ticket in self.void and flow.ticket != ticket:\n",
        (FAIR,),
    ),
    Fault(
        "who stops another that leaves with him is too late",
        FAIR_SHARING,
        "            self._leaving.remove(flow)\n",
        "            pass\n",
        (CHANNELS,),
    ),
    Fault(
        "a pause does not stop the clocks",
        ALIKE,
        "        self.capacity = capacity\n        self._share_out()\n",
        "        self._share_out()\n        self.capacity = capacity\n",
        (CHANNELS, EXACT),
    ),
    Fault(
        "who comes during a pause does not wait",
        FAIR_SHARING,
        "if flow.begun_s is None and not self.paused:",
        "if flow.begun_s is None:",
        (CHANNELS, EXACT),
    ),
    Fault(
        "what was sent before a stop is forgotten",
        ALIKE,
        "        flow.book(self.served_s(flow, now_s))\n",
        "",
        (CHANNELS, EXACT),
    ),
    Fault(
        "progress stands still between arrivals",
        ALIKE,
        "self.only.clock_s + self.speed * (now_s - self.since_s) - flow.since",
        "self.only.clock_s - flow.since",
        (CHANNELS, EXACT),
    ),
    Fault(
        "several carriers are one",
        FAIR_SHARING,
        "OneClass(flow, 0 if self.paused else self.carriers, now_s)",
        "OneClass(flow, 0 if self.paused else 1, now_s)",
        (EXACT_SEVERAL,),
    ),
    Fault(
        "after a pause several carriers are one",
        FAIR_SHARING,
        "set_capacity(self.carriers,",
        "set_capacity(1,",
        (EXACT_SEVERAL,),
    ),
    Fault(
        "those who come to a paused channel are sent",
        FAIR_SHARING,
        "OneClass(flow, 0 if self.paused else self.carriers, now_s)",
        "OneClass(flow, self.carriers, now_s)",
        (CHANNELS, EXACT),
    ),
)
