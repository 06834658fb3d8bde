"""Faults in radios: decibels, noise, Shannon, shadowing."""

from __future__ import annotations

from mutants.fault import Fault

BUDGET = "fedsim/radio/budget.py"
EFFICIENCY = "fedsim/radio/shannon.py"
FREE_SPACE = "fedsim/radio/path_loss.py"
LOG_DISTANCE = "fedsim/radio/path_loss.py"
LINK_BUDGET = "fedsim/radio/snr.py"
SHADOWING = "fedsim/radio/snr.py"
SHANNON = "fedsim/radio/shannon.py"
TRACE = "fedsim/radio/trace.py"
TEST_EFFICIENCY = "tests/radio/test_spectral_efficiency.py"
TEST_LINK_BUDGET = "tests/radio/test_link_budget.py"
TEST_PATH_LOSS = "tests/radio/test_path_loss.py"
TEST_SHADOWING = "tests/radio/test_shadowing.py"
TEST_SHANNON = "tests/radio/test_shannon_radio.py"
TEST_TRACE = "tests/radio/test_radio_trace.py"

FAULTS = (
    Fault(
        "nats for bits",
        EFFICIENCY,
        "exponent = snr_db / 10 * math.log2(10)",
        "exponent = snr_db / 10 * math.log(10)",
        (TEST_EFFICIENCY,),
    ),
    Fault(
        "decades for octaves",
        EFFICIENCY,
        "math.log1p(2.0 ** -abs(exponent)) / math.log(2)",
        "math.log1p(2.0 ** -abs(exponent)) / math.log(10)",
        (TEST_EFFICIENCY,),
    ),
    Fault(
        "5 % less of Shannon's bound",
        EFFICIENCY,
        "min(self.alpha * shannon_bps_per_hz(snr_db)",
        "min(0.95 * self.alpha * shannon_bps_per_hz(snr_db)",
        (TEST_EFFICIENCY,),
    ),
    Fault(
        "no modulation has an end",
        EFFICIENCY,
        "return min(self.alpha * shannon_bps_per_hz(snr_db), self.most_bps_per_hz)",
        "return self.alpha * shannon_bps_per_hz(snr_db)",
        (TEST_EFFICIENCY,),
    ),
    Fault(
        "coverage has no end",
        EFFICIENCY,
        "if snr_db < self.snr_min_db:",
        "if snr_db < -1000:",
        (TEST_EFFICIENCY,),
    ),
    Fault(
        "the loss at the reference is that at 1 m",
        LOG_DISTANCE,
        "free_space_db(self.reference_distance_m, carrier_hz)",
        "free_space_db(1.0, carrier_hz)",
        (TEST_PATH_LOSS,),
    ),
    Fault(
        "one direction is coverage enough",
        "fedsim/network/wires.py",
        "if min(rates.uplink_bps, rates.downlink_bps) == 0",
        "if max(rates.uplink_bps, rates.downlink_bps) == 0",
        (TEST_TRACE,),
    ),
    Fault("Friis with 19 lg d", FREE_SPACE, "return 20 * math.log10(4", "return 19 * math.log10(4", (TEST_PATH_LOSS,)),
    Fault("Friis with 2 pi", FREE_SPACE, "math.log10(4 * math.pi", "math.log10(2 * math.pi", (TEST_PATH_LOSS,)),
    Fault(
        "log-distance 5 % less steep",
        LOG_DISTANCE,
        "beyond_db = 10 * self.exponent",
        "beyond_db = 9.5 * self.exponent",
        (TEST_PATH_LOSS,),
    ),
    Fault("noise 1 dB higher", BUDGET, "NOISE_DBM_PER_HZ = -174.0", "NOISE_DBM_PER_HZ = -173.0", (TEST_LINK_BUDGET,)),
    Fault("noise is not told", BUDGET, "received_dbm - self.noise_dbm -", "received_dbm -", (TEST_LINK_BUDGET,)),
    Fault(
        "the noise figure is a gain",
        BUDGET,
        "self.noise_dbm - self.noise_figure_db",
        "self.noise_dbm + self.noise_figure_db",
        (TEST_LINK_BUDGET,),
    ),
    Fault(
        "the base station hears with a device's noise figure",
        LINK_BUDGET,
        "noise_figure_db=self.station_noise_figure_db",
        "noise_figure_db=self.device_noise_figure_db",
        (TEST_LINK_BUDGET,),
    ),
    Fault(
        "interference at the device counts at the station",
        LINK_BUDGET,
        "interference_margin_db=self.uplink_interference_margin_db",
        "interference_margin_db=self.downlink_interference_margin_db",
        (TEST_LINK_BUDGET,),
    ),
    Fault(
        "heights do not count",
        LINK_BUDGET,
        "distance_m = math.hypot(distance_m, self.station_height_m - self.device_height_m)",
        "distance_m = distance_m",
        (TEST_LINK_BUDGET,),
    ),
    Fault(
        "shadows get deeper with every redraw",
        SHADOWING,
        "self.sigma_db * math.sqrt(-math.expm1(-2 * blocks))",
        "self.sigma_db",
        (TEST_SHADOWING,),
    ),
    Fault(
        "shadows last twice as long",
        SHADOWING,
        "blocks = self.redraw_every_s / self.correlation_s",
        "blocks = self.redraw_every_s / self.correlation_s / 2",
        (TEST_SHADOWING,),
    ),
    Fault(
        "all devices are in one shadow",
        SHADOWING,
        'site.streams("radio/shadowing", site.index)',
        'site.streams("radio/shadowing", 0)',
        (TEST_SHADOWING,),
    ),
    Fault(
        "a shadow helps upwards",
        SHANNON,
        "median_db.uplink - loss_db",
        "median_db.uplink + loss_db",
        (TEST_SHANNON,),
    ),
    Fault(
        "a later shadow is the first one",
        SHANNON,
        "islice(self.snr.losses_db(site), 1, None)",
        "islice(self.snr.losses_db(site), 0, None)",
        (TEST_SHANNON, "tests/radio/test_radio_conformance.py"),
    ),
    Fault(
        "a repeated trace loses its first row",
        TRACE,
        "                for row in range(len(times_s)):",
        "                for row in range(1, len(times_s)):",
        (TEST_TRACE,),
    ),
)
