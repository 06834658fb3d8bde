"""Faults in what a message is on a hop: its bytes, its time, its losses and its row in the trace."""

from __future__ import annotations

from mutants.fault import Fault, theory

TRANSFER = "fedsim/network/transfer.py"
PACKETS = "fedsim/network/packets.py"
NETWORK = "fedsim/network/network.py"
TEST_TRANSFERS = "tests/network/test_transfers.py"
TEST_PACKETS = "tests/network/test_packets.py"
TEST_LOSSES = "tests/network/test_random_losses.py"
TEST_CONSERVATION = "tests/laws/test_conservation.py"
EVERY_MEAN = theory(
    "test_the_mean_sojourn_on_a_serial_hop_is_pollaczek_and_khinchines",
    "test_each_sojourn_on_a_serial_hop_is_the_work_found_and_its_own",
    "test_retransmissions_make_the_queue_that_their_airtime_makes",
    "test_on_a_dedicated_hop_the_sojourn_is_the_airtime_whatever_the_load",
    "test_the_mean_sojourn_on_a_fair_hop_does_not_depend_on_the_distribution_of_sizes",
    "test_the_mean_sojourn_on_a_fair_hop_is_in_proportion_to_the_size",
    "test_weights_divide_a_fair_hop_as_fayolle_mitrani_and_iasnogorodski_say",
    "test_a_hop_of_which_each_can_use_a_quarter_is_erlangs_queue_of_four",
    "test_equal_messages_delay_each_other_equally",
)

FAULTS = (
    Fault(
        "5 % more bits in a byte",
        NETWORK,
        "            return bits(size_bytes)\n",
        "            return 1.05 * bits(size_bytes)\n",
        EVERY_MEAN,
        by_each=True,
    ),
    Fault(
        "2.5 % fewer bits in a byte",
        NETWORK,
        "            return bits(size_bytes)\n",
        "            return 0.975 * bits(size_bytes)\n",
        EVERY_MEAN,
        by_each=True,
    ),
    Fault(
        "waiting is counted 5 % too long",
        TRANSFER,
        "            begun_s - self.offered_s,",
        "            1.05 * (begun_s - self.offered_s),",
        theory(
            "test_littles_law_holds_on_every_hop_of_a_line[SerialChannel]",
            "test_littles_law_holds_on_every_channel_of_a_whole_scenario",
        ),
        by_each=True,
    ),
    Fault(
        "airtime is counted 5 % too long",
        TRANSFER,
        "            self.spent_s,",
        "            1.05 * self.spent_s,",
        theory(
            "test_littles_law_holds_on_every_hop_of_a_line",
            "test_littles_law_holds_on_every_channel_of_a_whole_scenario",
        ),
        by_each=True,
    ),
    Fault(
        "packets are lost 5 % less often after the last try",
        PACKETS,
        "missing = int(rng.binomial(missing, loss.probability))",
        "missing = int(rng.binomial(missing, 0.95 * loss.probability))",
        theory("test_retransmissions_make_the_queue_that_their_airtime_makes"),
        by_each=True,
    ),
    Fault(
        "the first try is lost 10 % less often",
        PACKETS,
        "missing = int(rng.binomial(count, loss.probability))",
        "missing = int(rng.binomial(count, 0.9 * loss.probability))",
        (TEST_PACKETS, *theory("test_retransmissions_make_the_queue_that_their_airtime_makes")),
    ),
    Fault(
        "one try more than allowed",
        PACKETS,
        "for _ in range(loss.attempts - 1):",
        "for _ in range(loss.attempts):",
        (TEST_PACKETS,),
    ),
    Fault(
        "headers are not sent again",
        PACKETS,
        "again_bytes += missing * packet_bytes",
        "again_bytes += missing * (packet_bytes - transport.header_bytes)",
        (TEST_PACKETS,),
    ),
    Fault(
        "the last packet has no header",
        PACKETS,
        "kinds.append((messages, rest_bytes + transport.header_bytes))",
        "kinds.append((messages, rest_bytes))",
        (TEST_PACKETS,),
    ),
    Fault(
        "a lost packet loses the message although it came through later",
        PACKETS,
        "delivered = delivered and not missing",
        "delivered = delivered and not again_bytes",
        (TEST_PACKETS,),
    ),
    Fault(
        "every crossing of a hop has the same luck",
        NETWORK,
        "self._crossings[of, client, hop.link.index, hop.direction] += 1",
        "self._crossings[of, client, hop.link.index, hop.direction] += 0",
        (TEST_TRANSFERS, *theory("test_retransmissions_make_the_queue_that_their_airtime_makes")),
    ),
    Fault(
        "bytes of a lost message are not counted",
        TRANSFER,
        "        put_bytes = self.repeated_bytes + sent_bytes\n",
        "        put_bytes = (self.repeated_bytes + sent_bytes) * (outcome is not Outcome.LOST)\n",
        (TEST_TRANSFERS,),
    ),
    Fault(
        "what was given up counts as sent",
        TRANSFER,
        "        sent_bytes = attempted.bytes * share_sent\n",
        "        sent_bytes = attempted.bytes\n",
        (TEST_TRANSFERS,),
    ),
    Fault(
        "of what was given up all retransmissions count",
        TRANSFER,
        "            self.repeated_bytes + attempted.retransmitted_bytes * share_sent,",
        "            self.repeated_bytes + attempted.retransmitted_bytes,",
        (TEST_TRANSFERS,),
    ),
    Fault(
        "up is counted as down",
        NETWORK,
        "            if hop.is_uplink:",
        "            if not hop.is_uplink:",
        (TEST_TRANSFERS, "tests/protocols/test_stops.py"),
    ),
    Fault(
        "a message that was lost goes on",
        TRANSFER,
        "if not self.attempted.delivered or (",
        "if (",
        (TEST_TRANSFERS,),
    ),
    Fault(
        "what has been sent and has not arrived is in no book",
        NETWORK,
        "flows += (*channel.flows, *channel.sent)",
        "flows += channel.flows",
        (TEST_CONSERVATION,),
    ),
    Fault(
        "what waits for its device is in no book",
        NETWORK,
        "flows = [flow for link in self.links for flow in link.waiting]",
        "flows = []",
        (TEST_CONSERVATION,),
    ),
    Fault(
        "what is about to be lost is in no book",
        NETWORK,
        " | self.doomed.keys()",
        "",
        (TEST_CONSERVATION,),
    ),
    Fault(
        "luck is the same up and down",
        NETWORK,
        "network/{of}/{hop.link.index}/{hop.direction.value}",
        "network/{of}/{hop.link.index}",
        (TEST_LOSSES,),
    ),
    Fault(
        "luck is the same on every link",
        NETWORK,
        "network/{of}/{hop.link.index}/",
        "network/{of}/",
        (TEST_LOSSES,),
    ),
    Fault(
        "servers have the same luck with every message",
        NETWORK,
        "self._crossings[of, client, hop.link.index, hop.direction] += 1",
        "self._crossings[of, client, hop.link.index, hop.direction] += client >= 0",
        (TEST_LOSSES,),
    ),
    Fault(
        "giving up leaves the message on the channel",
        TRANSFER,
        "            self.hop.channel.stop(self)\n        self._release_device()\n",
        "            pass\n        self._release_device()\n",
        (TEST_TRANSFERS,),
    ),
    Fault(
        "weights are ignored",
        TRANSFER,
        "self.share, self.weight = hop.share, hop.weight",
        "self.share, self.weight = hop.share, 1.0",
        theory("test_weights_divide_a_fair_hop_as_fayolle_mitrani_and_iasnogorodski_say"),
        by_each=True,
    ),
    Fault(
        "the largest share is ignored",
        TRANSFER,
        "self.share, self.weight = hop.share, hop.weight",
        "self.share, self.weight = 1.0, hop.weight",
        theory("test_a_hop_of_which_each_can_use_a_quarter_is_erlangs_queue_of_four"),
        by_each=True,
    ),
)
