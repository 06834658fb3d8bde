"""Faults in what cells on one carrier do to each other."""

from __future__ import annotations

from mutants.fault import Fault

SURROUNDINGS = "fedsim/radio/surroundings.py"
TEST_INTERFERENCE = "tests/radio/test_interference.py"

FAULTS = (
    Fault(
        "a device's own mast disturbs it",
        SURROUNDINGS,
        "    square[np.array([path.mast for path in paths], np.intp)[:, None] == masts] = np.inf\n",
        "",
        (TEST_INTERFERENCE,),
    ),
    Fault(
        "a full cell sends more than all the time",
        SURROUNDINGS,
        "wanted / np.maximum(self._in_cells(wanted), 1.0)[self._cell]",
        "wanted",
        (TEST_INTERFERENCE,),
    ),
    Fault(
        "loads follow from rates without interference",
        SURROUNDINGS,
        "self._radio.rates_under(self._medians_db, self._margins(heard))",
        "self._radio.rates_at_all(self._medians_db)",
        (TEST_INTERFERENCE,),
    ),
    Fault(
        "the last loads hold from the beginning",
        SURROUNDINGS,
        "self.interference.loads[entry]",
        "self.interference.loads[-1]",
        (TEST_INTERFERENCE,),
    ),
    Fault(
        "a device on a few tones spreads its power over all of them",
        "fedsim/radio/table_radio.py",
        "sends / rates.uplink_share",
        "sends",
        (TEST_INTERFERENCE,),
    ),
    Fault(
        "other cells bring a device into another coverage class",
        "fedsim/radio/nb_iot/radio.py",
        "self._rates_in(self._classes_at(snr_db, before), ratios_db)",
        "self._rates_in(self._classes_at(ratios_db, before), ratios_db)",
        (TEST_INTERFERENCE,),
    ),
    Fault(
        "redraws make loads forget their time",
        "fedsim/radio/snr_radio.py",
        "others = next(other, None) if other_due else others",
        "others = next(other, None)",
        (TEST_INTERFERENCE,),
    ),
)
