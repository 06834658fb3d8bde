"""Faults in channels: who sends when, and what stopping, pausing and another rate do to it."""

from __future__ import annotations

from mutants.fault import CHANNELS, Fault, exact, exact_of_several, theory

CHANNEL = "fedsim/network/disciplines/channel.py"
SERVERS = "fedsim/network/disciplines/multi_server.py"
QUEUE = "tests/network/test_multi_server_channel.py"
SERIAL = "fedsim/network/disciplines/serial.py"
DEDICATED = "fedsim/network/disciplines/dedicated.py"
ALARM = "fedsim/kernel/clock.py"

FAULTS = (
    Fault(
        "a serial channel does not wait for those before",
        SERIAL,
        "        if self._free_s < now_s:\n",
        "        if True:\n",
        theory(
            "test_the_mean_sojourn_on_a_serial_hop_is_pollaczek_and_khinchines",
            "test_each_sojourn_on_a_serial_hop_is_the_work_found_and_its_own",
            "test_a_fair_hop_is_empty_when_a_serial_one_is",
        ),
        by_each=True,
    ),
    Fault(
        "a serial channel is busy while its message is on the way",
        SERIAL,
        "self._work_s += flow.need_s\n",
        "self._work_s += flow.need_s + self.delay_s\n",
        (CHANNELS,),
    ),
    Fault(
        "the delay counts twice",
        SERIAL,
        "Alarm(self.env, max(0.0, flow.due_s + self.delay_s - now_s)",
        "Alarm(self.env, max(0.0, flow.due_s + 2 * self.delay_s - now_s)",
        (CHANNELS,),
    ),
    Fault(
        "the delay counts twice where all send at once",
        CHANNEL,
        "self._on_the_way[flow] = self.env.now + self.delay_s",
        "self._on_the_way[flow] = self.env.now + 2 * self.delay_s",
        (CHANNELS,),
    ),
    Fault(
        "roundings add up in a queue",
        SERIAL,
        "self._free_s = flow.due_s = self._busy_since_s + self._work_s",
        "self._free_s = flow.due_s = self._free_s + flow.need_s",
        (CHANNELS,),
    ),
    Fault(
        "all that wait arrive with the first",
        SERIAL,
        "while (flow := queue.first) is not None and flow.due_s <= due_s:",
        "while (flow := queue.first) is not None:",
        (CHANNELS, exact("serial")),
    ),
    Fault(
        "who stops leaves his turn empty",
        SERIAL,
        "        flow.ticket = -1\n        self._replan_soon()\n",
        "        flow.ticket = -1\n",
        (CHANNELS, exact("serial")),
    ),
    Fault(
        "a pause turns the queue around",
        SERIAL,
        "for flow in self._queue if not self.paused else ():",
        "for flow in list(self._queue)[::-1] if not self.paused else ():",
        (CHANNELS, exact("serial")),
    ),
    Fault(
        "a serial channel sends during a pause",
        SERIAL,
        "        for flow in self._queue:\n            self._unplan(flow)\n",
        "",
        (CHANNELS, exact("serial")),
    ),
    Fault(
        "what comes to a paused serial channel is sent",
        SERIAL,
        "if self.paused or self._replanning is not None:",
        "if self._replanning is not None:",
        (CHANNELS, exact("serial")),
    ),
    Fault(
        "a dedicated channel sends during a pause",
        DEDICATED,
        "        for flow in self._flows:\n            self._halt(flow)\n",
        "",
        (CHANNELS, exact("dedicated")),
    ),
    Fault(
        "a new rate on a dedicated channel begins from nothing",
        DEDICATED,
        "            flow.book(self.served_s(flow))\n",
        "",
        (CHANNELS, exact("dedicated")),
    ),
    Fault(
        "what is taken back on its way arrives",
        CHANNEL,
        "            del self._on_the_way[flow]\n",
        "            pass\n",
        (CHANNELS, exact("fair")),
    ),
    Fault(
        "only the first that is on the way arrives",
        CHANNEL,
        "        if way and self._reception is None:\n",
        "        if False:\n",
        (CHANNELS, exact("fair")),
    ),
    Fault(
        "what has been given is needed again",
        CHANNEL,
        "        self.need_s -= served_s\n",
        "",
        (CHANNELS, exact("fair")),
    ),
    Fault(
        "a narrow one uses all of the channel in the books",
        CHANNEL,
        "        self.spent_s += served_s * self.share\n",
        "        self.spent_s += served_s\n",
        (CHANNELS, exact("fair")),
    ),
    Fault(
        "a stopped alarm rings",
        ALARM,
        "        self.callbacks = ()\n",
        "        return\n",
        (CHANNELS, exact("fair")),
    ),
    Fault(
        "each of several carriers is 5 % slower",
        SERVERS,
        "carrier.work_s += flow.need_s\n",
        "carrier.work_s += 1.05 * flow.need_s\n",
        theory(
            "test_a_hop_of_three_carriers_is_erlangs_queue_of_three[M/M/3]",
            "test_each_sojourn_on_a_serial_hop_of_three_carriers_is_kiefers_and_wolfowitzs",
            "test_littles_law_holds_on_every_hop_of_a_line[SerialOnThree]",
        ),
        by_each=True,
    ),
    Fault(
        "nobody waits before several carriers",
        SERVERS,
        "len(self._sending) < self.carriers and (flow",
        "(flow",
        (QUEUE, exact_of_several("serial")),
    ),
    Fault(
        "one carrier too few is used",
        SERVERS,
        "len(self._sending) < self.carriers and (flow",
        "len(self._sending) < self.carriers - 1 and (flow",
        (QUEUE, exact_of_several("serial")),
    ),
    Fault(
        "who stops takes the carrier with him",
        SERVERS,
        "        del self._sending[flow]\n        self._fill()\n",
        "        del self._sending[flow]\n",
        (QUEUE, exact_of_several("serial")),
    ),
    Fault(
        "carriers are given out in a pause",
        SERVERS,
        "while not self.paused and len",
        "while len",
        (QUEUE, CHANNELS),
    ),
    Fault(
        "a message on one of several carriers is sent in a pause",
        SERVERS,
        "        for flow in self._sending:\n            self._halt(flow)\n",
        "",
        (QUEUE, CHANNELS),
    ),
    Fault(
        "carriers stay free after a pause",
        SERVERS,
        "            self._run(flow, _Carrier(self.env.now))\n        self._fill()\n",
        "            self._run(flow, _Carrier(self.env.now))\n",
        (QUEUE, exact_of_several("serial")),
    ),
    Fault(
        "another rate on one of several carriers begins from nothing",
        SERVERS,
        "            flow.book(self.served_s(flow))\n",
        "",
        (QUEUE, CHANNELS),
    ),
    Fault(
        "roundings add up on each of several carriers",
        SERVERS,
        "            self._run(follower, carrier)\n",
        "            self._run(follower, _Carrier(self.env.now))\n",
        (QUEUE,),
    ),
)
