"""Faults in the clock, in rounds and their ends, in streams and in tables."""

from __future__ import annotations

from mutants.fault import Fault, theory

GATHER = "fedsim/kernel/gather.py"
CLOCK = "fedsim/kernel/clock.py"
INBOX = "fedsim/kernel/inbox.py"
TRIP = "fedsim/kernel/trip.py"
STREAMS = "fedsim/kernel/streams.py"
JOURNEY = "fedsim/protocols/round_trip.py"
SELECTION = "fedsim/protocols/cohorts/random.py"
RUN_LOOP = "fedsim/protocols/run_loop.py"
ROUNDS = "fedsim/protocols/schedules/rounds.py"
TABLES = "fedsim/metrics/tables.py"
TEST_CLOCK = "tests/kernel/test_clock.py"
TEST_GATHER = "tests/kernel/test_gather.py"
TEST_INBOX = "tests/kernel/test_inbox.py"
TEST_TRIP = "tests/kernel/test_trip.py"
TEST_COHORTS = "tests/protocols/test_cohorts.py"
TEST_ROUNDS = "tests/protocols/test_rounds.py"
TEST_STOPS = "tests/protocols/test_stops.py"

FAULTS = (
    Fault(
        "a deadline comes before what happens in its instant",
        GATHER,
        "priority=EventPriority(LAST_IN_ITS_INSTANT + after)",
        "priority=EventPriority(0)",
        (TEST_GATHER,),
    ),
    Fault(
        "one more is waited for than is wanted",
        GATHER,
        "if self.arrived == self.wanted or",
        "if self.arrived == self.wanted + 1 or",
        (TEST_GATHER,),
    ),
    Fault(
        "updates are in the order of their arrival",
        GATHER,
        "[journey.value for journey in self.journeys if self.outcomes.get(journey) is True]",
        "[journey.value for journey, arrived in self.outcomes.items() if arrived]",
        (TEST_GATHER,),
    ),
    Fault(
        "what is urgent waits with the rest",
        CLOCK,
        "            self._urgent.append(event)\n",
        "            self._soon.append(event)\n",
        (TEST_CLOCK,),
    ),
    Fault(
        "what is far ahead is not put in order",
        CLOCK,
        "        self._far.sort()",
        "        self._far[:0] = ()",
        (TEST_CLOCK,),
    ),
    Fault(
        "what comes soon is taken for far ahead",
        CLOCK,
        "            if entry < self._horizon:",
        "            if len(self._queue) < self.MOST_NEAR // 2:",
        (TEST_CLOCK,),
    ),
    Fault(
        "who is interrupted does not give up what he waits for",
        TRIP,
        "            target.give_up()\n",
        "            pass\n",
        (TEST_ROUNDS,),
    ),
    Fault(
        "who is late is interrupted though he has arrived since",
        GATHER,
        "        if journey is not None and journey.is_alive:",
        "        if journey is not None:",
        ("tests/protocols/test_cohorts.py", TEST_ROUNDS),
    ),
    Fault(
        "who is interrupted before he has heard of the deadline lets the late ones go on",
        GATHER,
        "self._value.late if self.triggered and self._ok else self.waiting.journeys",
        "self.waiting.journeys",
        (f"{TEST_TRIP}::test_who_was_late_is_given_up_too_where_nobody_has_heard_of_it",),
    ),
    Fault(
        "a failure that nobody takes care of is forgotten",
        TRIP,
        "            self._env.schedule(soon, URGENT)\n",
        "            pass\n",
        (TEST_TRIP,),
    ),
    Fault(
        "a run may end before a failure is raised",
        TRIP,
        "            self._env.schedule(soon, URGENT)\n",
        "            self._env.schedule(soon)\n",
        (f"{TEST_TRIP}::test_the_end_of_a_run_hides_no_failure",),
    ),
    Fault(
        "of one instant they are handed over as they came",
        INBOX,
        "        self._landed.sort(key=itemgetter(0))\n",
        "",
        (TEST_INBOX,),
    ),
    Fault(
        "who is lost leaves his place empty",
        INBOX,
        "                self._woken.fail(journey.value)\n                return\n",
        "                self._woken.fail(journey.value)\n            return\n",
        (TEST_INBOX,),
    ),
    Fault(
        "a stream forgets its use",
        STREAMS,
        "/{self.index}/{self.use}",
        "/{self.index}/0",
        ("tests/kernel/test_streams.py",),
    ),
    Fault(
        "epochs take no time",
        "fedsim/protocols/task.py",
        "passes, samples = self.objective.forward_passes(self.table), samples * world.training.epochs",
        "passes = self.objective.forward_passes(self.table)",
        ("tests/devices/test_compute_times.py",),
    ),
    Fault(
        "every training has the same batches",
        "fedsim/protocols/task.py",
        "            client.trainings,\n",
        "            0,\n",
        (TEST_ROUNDS,),
    ),
    Fault(
        "the way back is forgotten",
        JOURNEY,
        "client.uplink if up is None else up, message)",
        "(), message)",
        (TEST_ROUNDS,),
    ),
    Fault(
        "a cohort is rounded up", SELECTION, "math.floor(self.mean_size", "math.ceil(self.mean_size", (TEST_COHORTS,)
    ),
    Fault(
        "every round has the same cohort",
        SELECTION,
        'world.streams("selection", 0, at.number)',
        'world.streams("selection", 0, 1)',
        (TEST_COHORTS,),
    ),
    Fault(
        "busy devices are chosen",
        SELECTION,
        "client.attachment.reachable and (even_if_busy or not client.busy)",
        "client.attachment.reachable",
        (TEST_ROUNDS,),
    ),
    Fault(
        "a run has a round too many",
        RUN_LOOP,
        "rounds is not None and done.number >= rounds",
        "rounds is not None and done.number > rounds",
        (TEST_STOPS,),
    ),
    Fault(
        "only what goes up counts towards an end",
        RUN_LOOP,
        "return done.uplink_bytes + done.downlink_bytes\n",
        "return done.uplink_bytes\n",
        (TEST_STOPS,),
    ),
    Fault(
        "late work goes on although it is to stop",
        "fedsim/protocols/site.py",
        '            give_up(gathered.late, "its round is over")\n',
        "            pass\n",
        (TEST_ROUNDS,),
    ),
    Fault(
        "everybody weighs the same",
        ROUNDS,
        'if self.weighting == "uniform":',
        "if True:",
        (TEST_ROUNDS,),
    ),
    Fault(
        "aggregation takes no time",
        "fedsim/protocols/site.py",
        "        yield self.world.env.timeout(self.world.cloud.aggregation_s)\n",
        "",
        (TEST_ROUNDS,),
    ),
    Fault(
        "queues are 5 % too long in the table of links",
        TABLES,
        'total("queued_s") / duration',
        '1.05 * total("queued_s") / duration',
        theory("test_littles_law_holds_on_every_channel_of_a_whole_scenario"),
        by_each=True,
    ),
)
