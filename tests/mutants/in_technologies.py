"""Faults in LTE, LTE-M, 5G and RedCap: blocks, cycles, repetitions, layers, overheads, turns, grants."""

from __future__ import annotations

from mutants.fault import Fault

LTE_BLOCKS = "fedsim/radio/lte/blocks.py"
LTE_FAMILY = "fedsim/radio/lte/family.py"
LTE_RADIO = "fedsim/radio/lte/radio.py"
LTE_ROWS = "fedsim/radio/lte/rows.py"
LTE_M_MODES = "fedsim/radio/lte_m/modes.py"
LTE_M_RADIO = "fedsim/radio/lte_m/radio.py"
LTE_M_ROWS = "fedsim/radio/lte_m/rows.py"
LTE_M_TIMING = "fedsim/radio/lte_m/timing.py"
NR_FAMILY = "fedsim/radio/nr/family.py"
NR_ROWS = "fedsim/radio/nr/rows.py"
NR_TABLES = "fedsim/radio/nr/tables.py"
REDCAP = "fedsim/radio/nr/redcap.py"
TEST_LAWS = "tests/radio/test_technology_laws.py"
TEST_LTE = "tests/radio/test_lte.py"
TEST_LTE_M = "tests/radio/test_lte_m.py"
TEST_NR = "tests/radio/test_nr.py"
TEST_PUBLISHED = "tests/docs/test_published_points.py"
TEST_REDCAP = "tests/radio/test_redcap.py"

FAULTS = (
    Fault(
        "a half-duplex device of LTE-M switches in no time",
        LTE_M_TIMING,
        "\nSWITCH = 1",
        "\nSWITCH = 0",
        (TEST_PUBLISHED,),
    ),
    Fault(
        "with bundling each block of LTE-M is acknowledged",
        LTE_M_ROWS,
        "bundled=BUNDLED if self.bundling else 1",
        "bundled=1",
        (TEST_PUBLISHED, TEST_LTE_M),
    ),
    Fault(
        "power is not put into fewer resource blocks of LTE-M",
        LTE_M_ROWS,
        "10 * math.log10(all_blocks / size) if direction.uplink",
        "0.0 if direction.uplink",
        (TEST_LTE_M,),
    ),
    Fault(
        "repetitions of LTE-M cost no time",
        LTE_M_TIMING,
        "return data_from + blocks * repetitions + SWITCH",
        "return data_from + blocks + SWITCH",
        (TEST_LTE_M,),
    ),
    Fault(
        "each direction of LTE-M has a mode of its own",
        LTE_M_MODES,
        "return (snr_db.uplink < limits_db.uplink) | (snr_db.downlink < limits_db.downlink)",
        "return snr_db.uplink < limits_db.uplink",
        (TEST_LTE_M,),
    ),
    Fault(
        "mode A is taken as soon as it is better once",
        LTE_M_MODES,
        "return float(edges_db[worse[-1] + 1]) if len(worse)",
        "return mode_a.least_snr_db if len(worse)",
        (TEST_LTE_M, TEST_LAWS),
    ),
    Fault(
        "the budget of LTE-M does not know of modes",
        LTE_M_RADIO,
        "table = self._modes[int(self._modes.in_mode_b(ratios)[0])][way]",
        "table = self.tables[way]",
        (TEST_LTE_M,),
    ),
    Fault(
        "blocks of LTE have no checksum",
        LTE_BLOCKS,
        "    coded = bits + CHECKSUM_BITS\n",
        "    coded = bits\n",
        (TEST_LTE, TEST_LTE_M),
    ),
    Fault("any code rate is decoded", LTE_BLOCKS, "MOST_CODE_RATE = 0.93", "MOST_CODE_RATE = 1.3", (TEST_LTE,)),
    Fault(
        "repetitions gain three decibels a doubling",
        LTE_BLOCKS,
        "BELOW_DB_PER_DECADE = 8.3",
        "BELOW_DB_PER_DECADE = 10.0",
        (TEST_LTE, TEST_LTE_M, TEST_PUBLISHED),
    ),
    Fault(
        "the control region of a narrow carrier is as short as any",
        LTE_RADIO,
        "self.control_symbols + (self.resource_blocks <= NARROW)",
        "self.control_symbols",
        (f"{TEST_LTE}::test_longer_control_regions_leave_less",),
    ),
    Fault(
        "a category has the whole carrier for its blocks",
        LTE_ROWS,
        "                    size / direction.resource_blocks,\n",
        "                    1.0,\n",
        (TEST_LTE,),
    ),
    Fault(
        "layers of LTE have all the power each",
        LTE_ROWS,
        "needed_db + 10 * math.log10(layers) - closer_db",
        "needed_db - closer_db",
        (TEST_LTE,),
    ),
    Fault(
        "a device waits for the whole period of requests",
        LTE_FAMILY,
        "(self.scheduling_request_ms / 2 + REQUEST",
        "(self.scheduling_request_ms + REQUEST",
        (TEST_PUBLISHED, TEST_LTE, TEST_LTE_M),
    ),
    Fault(
        "5G grants come at once",
        NR_FAMILY,
        "REQUEST + self.grant_slots + self.k2_slots) * self.slot_s",
        "REQUEST + self.k2_slots) * self.slot_s",
        (TEST_NR, TEST_REDCAP),
    ),
    Fault(
        "layers of 5G have all the power each",
        NR_ROWS,
        "scheme.needed_db + 10 * math.log10(layers) - closer_db",
        "scheme.needed_db - closer_db",
        (TEST_NR,),
    ),
    Fault(
        "the uplink of 5G has the downlink's overhead",
        NR_ROWS,
        '(1, "uplink"): 0.08',
        '(1, "uplink"): 0.14',
        (TEST_NR, TEST_PUBLISHED, TEST_REDCAP),
    ),
    Fault(
        "the directions of 5G have each other's turns",
        NR_FAMILY,
        "time_share=times[way]",
        "time_share=times[1 - way]",
        (TEST_NR, TEST_PUBLISHED),
    ),
    Fault(
        "table 3 of 5G reaches Shannon's bound",
        NR_TABLES,
        "needed_db = shannon_db(efficiency) + lowest.needed_db - shannon_db(lowest.efficiency)",
        "needed_db = shannon_db(efficiency)",
        (TEST_NR,),
    ),
    Fault(
        "a margin helps",
        NR_FAMILY,
        "- self.implementation_margin_db",
        "+ self.implementation_margin_db",
        (TEST_NR, TEST_LAWS),
    ),
    Fault(
        "devices of RedCap at 10 Mbit/s keep all resource blocks",
        REDCAP,
        "return min(self.resource_blocks, REDUCED_BLOCKS[self.subcarrier_khz])",
        "return self.resource_blocks",
        (TEST_REDCAP,),
    ),
    Fault(
        "RedCap of Release 18 is as fast as that of 17",
        REDCAP,
        "return math.inf if self.release == 17 else REDUCED_BPS",
        "return math.inf",
        (TEST_REDCAP, TEST_PUBLISHED),
    ),
)
