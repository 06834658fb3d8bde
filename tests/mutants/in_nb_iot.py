"""Faults in NB-IoT, in tables of rates, and in transport blocks on the clock."""

from __future__ import annotations

from mutants.fault import Fault

BLOCKS = "fedsim/network/blocks.py"
COVERAGE = "fedsim/radio/nb_iot/coverage.py"
CYCLES = "fedsim/radio/nb_iot/cycles.py"
RADIO = "fedsim/radio/nb_iot/radio.py"
RATE_TABLE = "fedsim/radio/rate_table.py"
TEST_BLOCKS = "tests/network/test_blocks.py"
TEST_NB_IOT = "tests/radio/test_nb_iot.py"

FAULTS = (
    Fault("an answer is sent once", CYCLES, "ANSWER_MS * answers", "ANSWER_MS", (TEST_NB_IOT,)),
    Fault(
        "broadcast delays no control message",
        CYCLES,
        "return control / part + TO_UPLINK_MS",
        "return control + TO_UPLINK_MS",
        (TEST_NB_IOT,),
    ),
    Fault(
        "few tones help nobody",
        CYCLES,
        "10 * math.log10(CARRIER_TONES / tones) + gain_db",
        "gain_db",
        (TEST_NB_IOT,),
    ),
    Fault(
        "random access takes no air",
        CYCLES,
        "sent_ms / cycle_ms * tones / CARRIER_TONES / free_air",
        "sent_ms / cycle_ms * tones / CARRIER_TONES",
        (TEST_NB_IOT,),
    ),
    Fault(
        "a cycle ends before the next control message",
        CYCLES,
        "math.ceil(cycle_ms / self.period_ms) * self.period_ms",
        "max(cycle_ms, self.period_ms)",
        (TEST_NB_IOT,),
    ),
    Fault(
        "blocks inside LTE are as large as others",
        CYCLES,
        "IN_BAND_MOST_I_TBS = 10",
        "IN_BAND_MOST_I_TBS = 13",
        (TEST_NB_IOT,),
    ),
    Fault(
        "hysteresis keeps nobody back",
        COVERAGE,
        "coupling_loss_db + hysteresis_db",
        "coupling_loss_db",
        (TEST_NB_IOT,),
    ),
    Fault(
        "answers are rarer where the best row has fewer",
        RADIO,
        "np.maximum.accumulate(repetitions[::-1])[::-1]",
        "repetitions",
        (TEST_NB_IOT,),
    ),
    Fault(
        "the first row of a kind is the best",
        RATE_TABLE,
        "_merit(row) > _merit(best[-1])",
        "row.bps > best[-1].bps",
        (TEST_NB_IOT,),
    ),
    Fault(
        "a short message takes its own bits",
        BLOCKS,
        "granted_bits = math.ceil(message_bits / grant_bits) * grant_bits",
        "granted_bits = message_bits",
        (TEST_BLOCKS,),
    ),
    Fault(
        "as many blocks fail as get through",
        BLOCKS,
        "1.0 - format_.block_errors))",
        "format_.block_errors))",
        (TEST_BLOCKS,),
    ),
    Fault(
        "after a redraw blocks are as before",
        "fedsim/network/coverage.py",
        "hop.format = formats[number]",
        "pass",
        (TEST_BLOCKS,),
    ),
    Fault(
        "a device sends as fast as if random access took nothing",
        CYCLES,
        "1e3 / cycle_ms / slower",
        "1e3 / cycle_ms",
        (TEST_NB_IOT,),
    ),
    Fault(
        "a message that begins out of coverage has no blocks",
        "fedsim/network/transfer.py",
        "        if self.air_bits is None:\n",
        "        if self.hop.rate_bps == 0 or self.air_bits is None and self.start_s < self.network.env.now:\n"
        "            self.air_bits = 8 * self.attempted.bytes\n"
        "        if self.air_bits is None:\n",
        (TEST_BLOCKS,),
    ),
    Fault(
        "blocks of a longer message are not sent again more often",
        BLOCKS,
        "blocks = messages * math.ceil(message_bits / block_bits)",
        "blocks = messages",
        (TEST_BLOCKS,),
    ),
)
