"""Faults in schedules with base stations, in super nodes, and in how single steps are computed together."""

from __future__ import annotations

from mutants.fault import Fault

SCHEDULES = "fedsim/protocols/schedules/"
STATIONS, STEPS = SCHEDULES + "stations.py", SCHEDULES + "compound_steps.py"
COHORTS = "fedsim/protocols/cohorts/"
SUPER_NODES = COHORTS + "super_nodes.py"
LAWS = "tests/laws/test_stations_learn_like_plain_loops.py"
COUNTS = "tests/data/test_class_counts.py"
CLOCK = "tests/protocols/test_stations.py"
LOOP = (f"{LAWS}::test_compound_steps_are_the_papers_loop",)
SAME = (f"{LAWS}::test_one_training_of_a_station_is_all_steps_of_its_devices",)
BYTES = (f"{CLOCK}::test_bytes_of_a_round_in_closed_form",)
RESUMED = ("tests/experiment/test_resume_at_stations.py",)

FAULTS = (
    Fault(
        "a station goes on from its own model of the round before",
        STATIONS,
        "        yield from site.receive(cloud)\n",
        "",
        BYTES,
    ),
    Fault(
        "all iterations of a round are the first one",
        STATIONS,
        "here = at._replace(offset=number)",
        "here = at",
        (f"{LAWS}::test_compound_steps_are_the_papers_loop[some-True]",),
    ),
    Fault(
        "weights are uniform, whatever the scenario says",
        STATIONS,
        'if self.weighting == "uniform":',
        "if True:",
        (f"{LAWS}::test_hierarchical_is_fedavg",),
    ),
    Fault(
        "a station waits for its clients for ever",
        STATIONS,
        "station.site.collect(trips, deadline_s=self.iteration_deadline_s)",
        "station.site.collect(trips)",
        (f"{CLOCK}::test_a_device_too_slow_for_an_iteration_is_left_out_of_it",),
    ),
    Fault(
        "the cloud waits for its stations for ever",
        STATIONS,
        "cloud.collect(list(trips), deadline_s=self.deadline_s, gate=gate)",
        "cloud.collect(list(trips), gate=gate)",
        (f"{CLOCK}::test_a_station_that_is_late_counts_with_all_whom_it_has_asked",),
    ),
    Fault(
        "who is late is lost",
        STATIONS,
        "late = sum(len(trips[trip].asked) for trip in gathered.late)",
        "late = 0",
        (f"{CLOCK}::test_a_station_that_is_late_counts_with_all_whom_it_has_asked",),
    ),
    Fault(
        "the order of devices in a step depends on who was faster",
        "fedsim/protocols/single_step.py",
        "senders = sorted(update.sender for update in updates)",
        "senders = [update.sender for update in updates][:1]",
        SAME,
    ),
    Fault(
        "a step that was lost is made all the same",
        STEPS,
        "station.steps.append(joint_step(updates, captures))",
        "station.steps.append(tuple(Piece(client, captures[client]) for client in sorted(captures)))",
        SAME,
    ),
    Fault(
        "a mini-batch of a step forgets all but its first client",
        "fedsim/learning/joint_steps.py",
        "yield np.concatenate([captured_ids(dataset, client, capture, streams) for client, capture in step])",
        "yield np.concatenate([captured_ids(dataset, *step[0], streams) for _ in step])",
        (f"{LAWS}::test_all_devices_in_step_are_synchronous_sgd",),
    ),
    Fault(
        "the plain loop forgets all but the last client of a step",
        "fedsim/learning/joint_steps.py",
        "yield np.concatenate(xs), np.concatenate(ys)",
        "yield xs[-1], ys[-1]",
        LOOP,
    ),
    Fault(
        "momentum is let through",
        STEPS,
        "        if training.momentum:\n",
        "        if False:\n",
        (f"{CLOCK}::test_what_does_not_fit_is_refused",),
    ),
    Fault(
        "normalisation is let through",
        STEPS,
        "            why_not_alone(world.model),\n",
        "",
        (f"{CLOCK}::test_a_model_that_may_mix_samples_is_refused_where_steps_are_fused",),
    ),
    Fault(
        "a capture is offered anew each time",
        "fedsim/devices/stream_buffer.py",
        "        if self._next_one is None:\n            self._next_one = StreamBuffer.capture",
        "        if True:\n            self._next_one = StreamBuffer.capture",
        ("tests/devices/test_stream_buffer.py::test_a_mini_batch_is_offered_again_until_it_is_used",),
    ),
    Fault(
        "a mini-batch is kept after it was used",
        "fedsim/devices/stream_buffer.py",
        "        self._kept = self._next_one = None\n",
        "        self._kept = None\n",
        (f"{CLOCK}::test_a_mini_batch_is_used_up_by_whom_it_is_trained_on_and_by_nobody_else",),
    ),
    Fault(
        "nobody is presampled",
        SUPER_NODES,
        "drawn, others = order[: settings.presampled], sorted(order[settings.presampled :])",
        "drawn, others = list[int](), sorted(order)",
        (f"{LAWS}::test_compound_steps_are_the_papers_loop[some-True]",),
    ),
    Fault(
        "the selector does not know who is presampled",
        SUPER_NODES,
        "samples * self._goal - rows[drawn].sum(axis=0)",
        "samples * self._goal",
        (f"{CLOCK}::test_the_selector_is_asked_for_what_the_presampled_lack",),
    ),
    Fault(
        "what all data look like is what few have told",
        SUPER_NODES,
        "total = np.sum([self._held[index] for index in sorted(self._held)], axis=0)",
        "total = self._held[min(self._held)]",
        (f"{CLOCK}::test_the_selector_is_asked_for_what_the_presampled_lack",),
    ),
    Fault(
        "a number at a bound is of the level below",
        "fedsim/data/dataset.py",
        'side="right")',
        'side="left")',
        ("tests/data/test_federated_dataset.py::test_numbers_are_counted_by_their_levels",),
    ),
    Fault(
        "a bound is compared more exactly than a number is kept",
        "fedsim/data/dataset.py",
        "np.array(self.levels, self.y.dtype)",
        "np.array(self.levels)",
        ("tests/data/test_federated_dataset.py::test_a_number_that_is_a_bound_is_in_the_level_that_begins_there",),
    ),
    Fault(
        "stale counts are selected by",
        "fedsim/data/class_counts.py",
        "if client not in self._counted or self._counted[client] is not capture",
        "if client not in self._counted",
        (f"{CLOCK}::test_the_selector_is_asked_for_what_the_presampled_lack",),
    ),
    Fault(
        "a station needs the cloud to give its clients the whole model",
        "fedsim/protocols/exchanges/lasp.py",
        "if site.reaches(client) and not client.busy",
        "if client.attachment.reachable and not client.busy",
        (f"{CLOCK}::test_a_station_gives_its_clients_the_whole_model_while_its_wire_is_cut",),
    ),
    Fault(
        "where clients move a station stays as large as it is",
        STATIONS,
        "return len(world.clients) if self.move_share else Membership(world, 0.0).largest",
        "return Membership(world, 0.0).largest",
        (f"{CLOCK}::test_what_does_not_fit_is_refused",),
    ),
    Fault(
        "a pass is taken for the one before",
        "fedsim/data/class_counts.py",
        "if known is None or known[0] != number:",
        "if known is None:",
        (f"{COUNTS}::test_counts_of_captures_are_those_of_the_classes_seen",),
    ),
    Fault(
        "a moved device goes back to where it is",
        SCHEDULES + "membership.py",
        "self._station_of[index] = number + (number >= self._station_of[index])",
        "self._station_of[index] = number",
        (f"{CLOCK}::test_a_share_of_the_clients_moves_when_a_round_begins",),
    ),
    Fault(
        "a bundle takes as long as one message",
        "fedsim/network/bundle.py",
        "airtime = math.fsum(hop.share / hop.rate_bps for hop in hops)",
        "airtime = len(hops) * first.share / first.rate_bps",
        ("tests/network/test_bundle.py",),
    ),
    Fault(
        "reports that may be lost are bundled",
        "fedsim/network/bundle.py",
        "any(hop.loss.probability or hop.format.block_bits for hop in hops)",
        "any(hop.format.block_bits for hop in hops)",
        (f"{CLOCK}::test_where_packets_are_lost_each_report_is_a_message_of_its_own",),
    ),
    Fault(
        "messages of a bundle share one header",
        "fedsim/network/packets.py",
        "kinds.append((messages, rest_bytes + transport.header_bytes))",
        "kinds.append((1, messages * rest_bytes + transport.header_bytes))",
        (f"{CLOCK}::test_reports_cost_the_same_singly",),
    ),
    Fault(
        "a station forgets what its codec has left out",
        SCHEDULES + "station_reports.py",
        '"state": self._kept.get(station, {})',
        '"state": {}',
        (f"{LAWS}::test_a_codec_acts_on_what_stations_report",),
    ),
    Fault(
        "running statistics are coded",
        "fedsim/learning/operations/code.py",
        'if f"{part}.{name}" not in self.uncoded',
        "if True",
        ("tests/golden/test_operation_numbers.py",),
    ),
    Fault(
        "wires do not count for the backbone",
        "fedsim/metrics/tables.py",
        "put_bytes * ~access",
        "put_bytes * access",
        ("tests/metrics/test_result_tables.py",),
    ),
    Fault(
        "work begins for a round that is over",
        STATIONS,
        '            if not gate.open:\n                raise Lost("its round is over")\n            station.asked',
        "            station.asked",
        (f"{CLOCK}::test_no_work_begins_for_a_round_that_is_over",),
    ),
    Fault(
        "a station with nothing to report writes it all the same",
        SCHEDULES + "station_reports.py",
        "        if not site.has_trained:\n",
        "        if False:\n",
        (f"{CLOCK}::test_a_station_with_nothing_to_report_writes_nothing_so_its_codec_forgets_nothing",),
    ),
    Fault(
        "a station that is always late keeps all its models",
        SCHEDULES + "station_reports.py",
        "self._world.learner.compute_soon(kept)",
        "",
        (
            "tests/experiment/test_memory_over_rounds.py::test_a_station_that_is_always_late_does_not_hold_the_models_of_all_rounds",
        ),
    ),
    Fault(
        "a station needs a way to the cloud for each step",
        "fedsim/protocols/site.py",
        "return place.on_air and (own or not",
        "return place.reachable and (own or not",
        (f"{CLOCK}::test_a_station_goes_on_with_its_own_clients_while_a_wire_is_cut",),
    ),
    Fault(
        "devices report samples that are still to come",
        SUPER_NODES,
        "if wait_s <= ROUNDING * (1 + now_s):",
        "if True:",
        (f"{CLOCK}::test_a_device_reports_once_its_next_mini_batch_is_there",),
    ),
    Fault(
        "what the rule sends beside is free for stations",
        "fedsim/protocols/site.py",
        "return self._rule.bytes_beside(self.table) if self._rule else (0.0, 0.0)",
        "return 0.0, 0.0",
        (f"{CLOCK}::test_what_a_rule_sends_beside_goes_along_between_cloud_and_stations",),
    ),
    Fault(
        "a codec inside may measure without learning",
        "fedsim/protocols/combination.py",
        "measures = self.when().client_codec(self.codec).reads_learning",
        "measures = False",
        (f"{CLOCK}::test_a_measured_size_needs_learning_whoever_writes_it",),
    ),
)
