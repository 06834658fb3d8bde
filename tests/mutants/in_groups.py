"""Faults in groups that train in sequence, in what of a model travels, and in what clients keep of it."""

from __future__ import annotations

from mutants.fault import Fault

ATTACHMENT = "fedsim/network/attachment.py"
CALIBRATION = "fedsim/protocols/exchanges/calibration.py"
GROUPED = "fedsim/protocols/cohorts/grouped.py"
JOURNEY = "fedsim/protocols/round_trip.py"
LASP = "fedsim/protocols/exchanges/lasp.py"
MEMORY = "fedsim/protocols/exchanges/memory.py"
RELAY = "fedsim/protocols/schedules/relay.py"
ROUNDS = "fedsim/protocols/schedules/rounds.py"
SCC = "fedsim/protocols/exchanges/scc.py"
TEST_GROUPS = "tests/protocols/test_groups_in_sequence.py"
TEST_LASP = "tests/protocols/test_lasp_on_the_clock.py"
TEST_RELAY = "tests/protocols/test_relay.py"
UNDER_STRESS = "tests/laws/test_groups_under_stress.py"

FAULTS = (
    Fault(
        "from station to station always over the cloud",
        ATTACHMENT,
        "        shared += 1\n",
        "        shared += 0\n",
        (f"{TEST_RELAY}::test_from_one_station_to_another_the_model_goes_by_their_common_edge_server",),
    ),
    Fault(
        "wires in common are counted from the wrong end",
        ATTACHMENT,
        "zip(reversed(up), down, strict=False)",
        "zip(up, down, strict=False)",
        (f"{TEST_RELAY}::test_the_way_between_stations_is_the_shortest_by_a_common_node",),
    ),
    Fault(
        "everybody in a chain sends the model home",
        RELAY,
        "None if home else (place.air_uplink,)",
        "None",
        (f"{TEST_RELAY}::test_each_member_of_a_chain_in_one_cell_adds_its_air_and_its_work",),
    ),
    Fault(
        "everybody in a chain begins with the same model",
        RELAY,
        "            task = task.handed_on(so_far, task.table.bytes() if with_it else 0.0)\n",
        "            pass\n",
        (f"{TEST_RELAY}::test_a_model_is_handed_on_and_groups_are_averaged",),
    ),
    Fault(
        "a chain weighs as much as its last member",
        RELAY,
        "weight=so_far.weight + update.weight",
        "weight=update.weight",
        (f"{TEST_RELAY}::test_groups_weigh_the_same_or_as_many_samples_as_they_were_trained_on",),
    ),
    Fault(
        "who is lost costs the group its model",
        RELAY,
        'elif self.on_loss == "abandon":',
        "else:",
        (f"{TEST_RELAY}::test_who_is_lost_is_skipped_and_costs_what_was_sent",),
    ),
    Fault(
        "a group is never abandoned",
        RELAY,
        'elif self.on_loss == "abandon":',
        "elif False:",
        (f"{TEST_RELAY}::test_or_the_group_is_abandoned",),
    ),
    Fault(
        "when the last one is lost nobody sends the model home",
        RELAY,
        "        if holder.uplink:\n",
        "        if False:\n",
        (f"{TEST_RELAY}::test_when_the_last_one_is_lost_the_station_sends_the_model_home",),
    ),
    Fault(
        "who is late in its turn is never stopped",
        RELAY,
        'give_up(gathered.late, "its turn is over")',
        "pass",
        (f"{TEST_RELAY}::test_the_group_goes_on_without_who_is_late",),
    ),
    Fault(
        "the member of a late group goes on",
        "fedsim/kernel/gather.py",
        '        give_up(journeys, "nobody waits for it any more")\n',
        "",
        (
            f"{TEST_RELAY}::test_at_the_deadline_the_whole_group_is_late",
            "tests/protocols/test_interruptions.py::test_and_a_group_with_the_journey_of_whoever_has_his_turn",
            "tests/kernel/test_trip.py::test_an_interruption_reaches_all_that_its_waits_have_started",
        ),
        by_each=True,
    ),
    Fault(
        "a group that cannot begin ends the simulation",
        "fedsim/kernel/trip.py",
        "        if not self.defused:\n            raise",
        "        if True:\n            raise",
        (
            f"{TEST_RELAY}::test_a_group_that_cannot_even_begin_is_lost_at_once",
            f"{UNDER_STRESS}::test_everybody_is_accounted_for",
        ),
        by_each=True,
    ),
    Fault(
        "rounds of a block pass while nobody can be reached",
        ROUNDS,
        "        yield from _until_somebody_can_begin(cloud.world, members, task_of)\n",
        "",
        (f"{TEST_GROUPS}::test_in_the_middle_of_a_block_rounds_wait_for_its_clients_unless_there_is_no_hope",),
    ),
    Fault(
        "of a late group one is late",
        ROUNDS,
        "sum(sizes[late] for late in gathered.late)",
        "len(gathered.late)",
        (f"{TEST_RELAY}::test_at_the_deadline_the_whole_group_is_late",),
    ),
    Fault(
        "of a part's mean only the part is left",
        "fedsim/learning/rules/mean.py",
        '{**state["model"], **mean}',
        "mean",
        (f"{TEST_LASP}::test_the_mean_of_classifiers_goes_with_the_extractor_of_the_full_round",),
    ),
    Fault(
        "groups are drawn in every round",
        GROUPED,
        "        if at.first:\n",
        "        if True:\n",
        (f"{TEST_GROUPS}::test_the_groups_of_a_block_take_part_in_all_of_it",),
    ),
    Fault(
        "all groups take part",
        GROUPED,
        "math.floor(sampling_rate * groups + 1e-9)",
        "groups",
        (f"{TEST_GROUPS}::test_a_share_of_the_groups_takes_part_rounded_down_and_at_least_one",),
    ),
    Fault(
        "groups that stay keep their order",
        GROUPED,
        "self._formed = _in_another_order(world, at, self._formed)",
        "pass",
        (f"{TEST_GROUPS}::test_groups_that_stay_keep_their_order_or_change_it_in_each_round",),
    ),
    Fault(
        "groups that stay are drawn though nobody is there",
        GROUPED,
        "if not free.isdisjoint(self._formed[number])",
        "if True",
        (f"{TEST_GROUPS}::test_of_groups_that_stay_only_those_with_somebody_there_are_drawn",),
    ),
    Fault(
        "late reports go on",
        GROUPED,
        'give_up(gathered.late, "its groups are formed")',
        "pass",
        (f"{TEST_GROUPS}::test_reports_that_are_late_are_given_up_and_their_clients_left_out",),
    ),
    Fault(
        "reports cost nothing",
        "fedsim/protocols/cohorts/label_reports.py",
        "float(BYTES_PER_COUNT * len(counts))",
        "float(BYTES_PER_COUNT)",
        (f"{TEST_GROUPS}::test_reports_of_four_bytes_a_class_go_up_before_groups_are_formed",),
    ),
    Fault(
        "groups are formed of those who did not report",
        GROUPED,
        "return [world.clients[index] for index, _ in reports], np",
        "return [client for client, _ in zip(clients, reports)], np",
        (f"{TEST_GROUPS}::test_a_lost_report_leaves_its_client_out_and_is_counted",),
    ),
    Fault(
        "everybody gets the scatter",
        LASP,
        "            for client in clients\n",
        "            for client in world.clients\n",
        (f"{TEST_LASP}::test_the_scatter_goes_to_the_members_of_the_block_only",),
    ),
    Fault(
        "blocks of one round are scattered too",
        LASP,
        "if not at.first or at.interval == 1:",
        "if not at.first:",
        (f"{TEST_LASP}::test_with_blocks_of_one_round_it_is_the_whole_model_and_nothing_is_scattered",),
    ),
    Fault(
        "a calibration sends the whole model",
        "fedsim/protocols/site.py",
        'Message({**further, "model": begin}, table.bytes(part) + beside_down)',
        'Message({**further, "model": begin}, table.bytes() + beside_down)',
        (f"{TEST_LASP}::test_a_full_round_is_one_up_and_two_down_and_a_calibration_one_of_each_of_the_classifier",),
    ),
    Fault(
        "who has missed the scatter calibrates",
        CALIBRATION,
        "return Memory.of(client).block == self.at.block",
        "return True",
        (f"{TEST_LASP}::test_who_misses_the_scatter_sits_the_block_out",),
    ),
    Fault(
        "who has forgotten the extractor calibrates",
        JOURNEY,
        "    if not task.suits(client):\n",
        "    if False:\n",
        (f"{TEST_LASP}::test_a_device_that_forgets_while_a_classifier_is_on_its_way_to_it_does_nothing_with_it",),
    ),
    Fault(
        "the frozen extractor is trained",
        CALIBRATION,
        "flops = extracted * table.part_flops",
        "flops = 3 * extracted * table.part_flops",
        (f"{TEST_LASP}::test_calibration_takes_a_frozen_extractor_forward_and_a_classifier_in_training",),
    ),
    Fault(
        "compensation takes no time",
        SCC,
        "                more += samples\n",
        "                more += 0\n",
        (f"{TEST_LASP}::test_compensation_and_remembered_rows_take_their_time",),
    ),
    Fault(
        "samples that stay are remembered again",
        SCC,
        "if all(some.capture != now.capture for some in memory.seen):",
        "if True:",
        (f"{TEST_LASP}::test_samples_that_stay_for_a_block_are_remembered_once",),
    ),
    Fault(
        "the oldest rows come first",
        SCC,
        "[*reversed(memory.seen), *(",
        "[*memory.seen, *(",
        (f"{TEST_LASP}::test_rows_are_remembered_until_the_block_ends_and_those_to_choose_from_come_newest_first",),
    ),
    Fault(
        "a memory has no capacity",
        SCC,
        "min(self.capacity, sum(some.rows for some in newest_first))",
        "sum(some.rows for some in newest_first)",
        (
            f"{TEST_LASP}::test_the_memory_grows_by_a_blocks_batches_up_to_its_capacity",
            f"{UNDER_STRESS}::test_only_who_has_a_blocks_extractor_calibrates_and_nobody_holds_too_much",
        ),
        by_each=True,
    ),
    Fault(
        "one extractor is counted where two are kept",
        MEMORY,
        "1 + (self.keeps_backup and self.outdated)",
        "1",
        (f"{TEST_LASP}::test_the_memory_grows_by_a_blocks_batches_up_to_its_capacity",),
    ),
    Fault(
        "a batch of another block is taken for this one's",
        MEMORY,
        "if self.first_batch is not None and self.first_batch.block == self.block else None",
        "",
        (f"{TEST_LASP}::test_the_batch_of_a_block_whose_scatter_was_missed_is_no_batch_of_the_next_one",),
    ),
)
