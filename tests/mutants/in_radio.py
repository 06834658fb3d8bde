"""Faults in radios: decibels, noise, Shannon, turns, categories, shadowing and whom it reaches."""

from __future__ import annotations

from mutants.fault import Fault

BUDGET = "fedsim/radio/budget.py"
CARRIER = "fedsim/radio/carrier.py"
COVERAGE = "fedsim/network/coverage.py"
EFFICIENCY = "fedsim/radio/efficiency.py"
FREE_SPACE = "fedsim/radio/path_loss.py"
LOG_DISTANCE = "fedsim/radio/path_loss.py"
LINK_BUDGET = "fedsim/radio/snr.py"
PHILOX = "fedsim/kernel/philox.py"
RADIO_PATHS = "fedsim/network/radio_paths.py"
SHADOWING = "fedsim/radio/snr.py"
SHANNON = "fedsim/radio/shannon.py"
SNR_RADIO = "fedsim/radio/snr_radio.py"
TRACE = "fedsim/radio/trace.py"
TEST_CARRIER = "tests/radio/test_carrier.py"
TEST_CHANGING = "tests/network/test_rates_that_change.py"
TEST_EFFICIENCY = "tests/radio/test_spectral_efficiency.py"
TEST_LINK_BUDGET = "tests/radio/test_link_budget.py"
TEST_PATH_LOSS = "tests/radio/test_path_loss.py"
TEST_PHILOX = "tests/kernel/test_philox.py"
TEST_RADIO_PATHS = "tests/network/test_radio_paths.py"
TEST_SHADOWING = "tests/radio/test_shadowing.py"
TEST_SHANNON = "tests/radio/test_shannon_radio.py"
TEST_TRACE = "tests/radio/test_radio_trace.py"

FAULTS = (
    Fault(
        "nats for bits",
        EFFICIENCY,
        "exponent = snr_db / 10 * math.log2(10)  # SNR",
        "exponent = snr_db / 10 * math.log(10)  # SNR",
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
        "all devices of a station are in one shadow",
        SHADOWING,
        "np.array([path.index for path in paths], np.uint64)",
        "np.array([0 for path in paths], np.uint64)",
        (TEST_SHADOWING,),
    ),
    Fault(
        "a device has the same shadow at every station",
        SHADOWING,
        "np.array([path.station for path in paths], np.uint64)",
        "np.array([0 for path in paths], np.uint64)",
        (TEST_SHADOWING,),
    ),
    Fault(
        "a station and a device may change their parts",
        SHADOWING,
        "numbers, devices, stations, np.zeros(1, np.uint64)",
        "numbers, devices + stations, devices * stations, np.zeros(1, np.uint64)",
        (f"{TEST_SHADOWING}::test_a_pair_has_its_own_shadow_not_one_of_the_station_and_one_of_the_device",),
    ),
    Fault(
        "every draw is the first one",
        SHADOWING,
        "np.arange(first, first + ahead, dtype=np.uint64)",
        "np.arange(0, ahead, dtype=np.uint64)",
        (f"{TEST_SHADOWING}::test_how_many_numbers_are_drawn_ahead_changes_none",),
    ),
    Fault(
        "Philox's third word does not hear of the fourth",
        PHILOX,
        "high[::-1] ^ odd ^ keys, low[::-1]",
        "high[::-1] ^ odd[[0, 0]] ^ keys, low[::-1]",
        (TEST_PHILOX,),
    ),
    Fault("Philox has nine rounds", PHILOX, "ROUNDS = 10", "ROUNDS = 9", (TEST_PHILOX,)),
    Fault(
        "a product loses what its halves carry",
        PHILOX,
        "+ (middle >> HALF) + (other >> HALF)",
        "+ (middle >> HALF)",
        (TEST_PHILOX,),
    ),
    Fault(
        "a normal number may be infinite",
        PHILOX,
        "(first + np.uint64(1)) * 2.0**-53",
        "first * 2.0**-53",
        (TEST_PHILOX,),
    ),
    Fault(
        "a normal number is never negative", PHILOX, "2.0 * math.pi * turns", "0.5 * math.pi * turns", (TEST_PHILOX,)
    ),
    Fault(
        "a shadow helps upwards",
        SNR_RADIO,
        "rates = self.rates_at_all(UpDown(median_db.uplink - loss_db",
        "rates = self.rates_at_all(UpDown(median_db.uplink + loss_db",
        (TEST_SHANNON,),
    ),
    Fault(
        "a later shadow is the first one",
        SNR_RADIO,
        "islice(self._told(paths), 1, None)",
        "islice(self._told(paths), 0, None)",
        (TEST_SHANNON, "tests/radio/test_radio_conformance.py"),
    ),
    Fault(
        "many carry more than one does",
        EFFICIENCY,
        "np.minimum(self.alpha * (np.maximum(exponent, 0.0) + beyond), self.most_bps_per_hz)",
        "self.alpha * (np.maximum(exponent, 0.0) + beyond)",
        (TEST_CARRIER,),
    ),
    Fault(
        "many are covered everywhere",
        EFFICIENCY,
        "np.where(snr_db < self.snr_min_db, 0.0, carried)",
        "carried",
        (TEST_CARRIER,),
    ),
    Fault(
        "a special slot's downlink is as long as any",
        CARRIER,
        'self.slots.count("S") * (self.special_downlink_symbols or 0) / SYMBOLS',
        'self.slots.count("S")',
        (TEST_CARRIER,),
    ),
    Fault(
        "a special slot carries data upwards too",
        CARRIER,
        'UpDown(self.slots.count("U") / len(self.slots)',
        'UpDown((self.slots.count("U") + self.slots.count("S") / 7) / len(self.slots)',
        (TEST_CARRIER,),
    ),
    Fault(
        "turns make nothing slower",
        CARRIER,
        "hz * efficiency.bps_per_hz(db) * share",
        "hz * efficiency.bps_per_hz(db)",
        (TEST_CARRIER,),
    ),
    Fault(
        "turns make nothing slower for many",
        CARRIER,
        "hz * efficiency.bps_per_hz_of(db) * share * duty",
        "hz * efficiency.bps_per_hz_of(db) * duty",
        (TEST_CARRIER,),
    ),
    Fault(
        "a category has no maximum",
        CARRIER,
        "            min(hz * efficiency.bps_per_hz(db) * share * duty, most_bps)",
        "            hz * efficiency.bps_per_hz(db) * share * duty",
        (TEST_CARRIER,),
    ),
    Fault(
        "a device of a category has the carrier all the time",
        CARRIER,
        "            min(hz * efficiency.bps_per_hz(db) * share * duty, most_bps)",
        "            min(hz * efficiency.bps_per_hz(db) * share, most_bps)",
        (TEST_CARRIER,),
    ),
    Fault(
        "a device of a category keeps all of the carrier",
        CARRIER,
        "        return Rates(uplink_bps, downlink_bps, *self.duties)",
        "        return Rates(uplink_bps, downlink_bps)",
        (TEST_CARRIER,),
    ),
    Fault(
        "who asks without the maximum gets it too",
        CARRIER,
        "most_bps if cut else math.inf",
        "most_bps",
        (TEST_SHANNON,),
    ),
    Fault(
        "a category takes any bandwidth",
        CARRIER,
        "bandwidth_hz > technology.channel_hz",
        "bandwidth_hz > 1e3 * technology.channel_hz",
        (TEST_CARRIER,),
    ),
    Fault(
        "who is cut off is not told what would have been",
        SHANNON,
        '("rate without a maximum", uncut_bps',
        '("rate without a maximum", min(uncut_bps, self.most_bps[way])',
        (TEST_CARRIER,),
    ),
    Fault(
        "a base station's position depends on who has sensors",
        RADIO_PATHS,
        "names = [name for name, node in relays if node",
        "names = [name for name, node in relays if len(topology.graph[name]) > 1 and node",
        (TEST_RADIO_PATHS,),
    ),
    Fault(
        "a base station's position depends on servers",
        RADIO_PATHS,
        "stations = {name: position for position, name in enumerate(names)}",
        "stations = {name: position for position, name in enumerate(topology.infrastructure)}",
        (TEST_RADIO_PATHS,),
    ),
    Fault(
        "messages under way go on at the old rate",
        COVERAGE,
        "return [transfer.hop for link in self._links for transfer in network.on_link(link)]",
        "return []",
        (TEST_CHANGING,),
    ),
    Fault(
        "who is back among many is not told",
        COVERAGE,
        "return bool((self._covered & ~before).any())",
        "return False",
        (TEST_CHANGING,),
    ),
    Fault(
        "coverage of many is that of the uplink",
        COVERAGE,
        "(rates.uplink_bps > 0) & (rates.downlink_bps > 0)",
        "rates.uplink_bps > 0",
        (TEST_CHANGING,),
    ),
    Fault(
        "of many nobody is ever lost",
        COVERAGE,
        "for place in np.flatnonzero(~self._covered).tolist()]",
        "for place in ()]",
        (TEST_CHANGING,),
    ),
    Fault(
        "the shares of many stay as they are",
        COVERAGE,
        "np.flatnonzero(self._shared & (share != self._share))",
        "np.flatnonzero(self._shared & False)",
        (TEST_CHANGING,),
    ),
    Fault(
        "a repeated trace loses its first row",
        TRACE,
        "                for row in range(len(times_s)):",
        "                for row in range(1, len(times_s)):",
        (TEST_TRACE,),
    ),
)
