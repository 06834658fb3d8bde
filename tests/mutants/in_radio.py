"""Faults in radios: decibels, noise, Shannon, turns, categories, shadowing and whom it reaches."""

from __future__ import annotations

from mutants.fault import Fault

PROPAGATION = "fedsim/radio/propagation/"
BUDGET = "fedsim/radio/budget.py"
CARRIER = "fedsim/radio/carrier.py"
COVERAGE = "fedsim/network/coverage.py"
EFFICIENCY = "fedsim/radio/efficiency.py"
FACTORY = PROPAGATION + "factory.py"
FREE_SPACE = PROPAGATION + "simple.py"
LOG_DISTANCE = PROPAGATION + "simple.py"
LINK_BUDGET = "fedsim/radio/snr.py"
PHILOX = "fedsim/kernel/philox.py"
RURAL = PROPAGATION + "rural.py"
SHADOWING = PROPAGATION + "shadowing.py"
STANDARD = PROPAGATION + "standard.py"
URBAN = PROPAGATION + "urban.py"
WALLS = PROPAGATION + "penetration.py"
WAVES = PROPAGATION + "waves.py"
SHANNON = "fedsim/radio/shannon.py"
SNR_RADIO = "fedsim/radio/snr_radio.py"
TRACE = "fedsim/radio/trace.py"
TOPOLOGY = "fedsim/topology/graph.py"
TEST_CARRIER = "tests/radio/test_carrier.py"
TEST_CHANGING = "tests/network/test_rates_that_change.py"
TEST_EFFICIENCY = "tests/radio/test_spectral_efficiency.py"
TEST_LINK_BUDGET = "tests/radio/test_link_budget.py"
TEST_PATH_LOSS = "tests/radio/test_path_loss.py"
TEST_PHILOX = "tests/kernel/test_philox.py"
TEST_RADIO_PATHS = "tests/network/test_radio_paths.py"
TEST_SHADOWING = "tests/radio/test_shadowing.py"
TEST_PLACES = "tests/radio/test_shadows_of_places.py"
TEST_STANDARD = "tests/radio/test_tr38901.py"
TEST_WALLS = "tests/radio/test_penetration.py"
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
        PROPAGATION + "path_loss.py",
        "rise_m = self.station_height_m - self.device_height_m",
        "rise_m = 0 * self.station_height_m",
        (TEST_LINK_BUDGET,),
    ),
    Fault(
        "shadows get deeper with every redraw",
        SHADOWING,
        "math.exp(-blocks), math.sqrt(-math.expm1(-2 * blocks))",
        "math.exp(-blocks), 1.0",
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
        "masts = np.array([path.mast for path in paths], np.uint64)",
        "masts = np.array([0 for path in paths], np.uint64)",
        (TEST_SHADOWING,),
    ),
    Fault(
        "a mast and a device may change their parts",
        SHADOWING,
        "numbers, devices, masts, of_mast",
        "numbers, devices + masts, devices * masts, of_mast",
        (f"{TEST_SHADOWING}::test_a_mast_and_a_device_do_not_change_their_parts",),
    ),
    Fault(
        "a device's shadows at two masts have nothing in common",
        SHADOWING,
        "normals(key, numbers, devices, none, of_device)",
        "normals(key, numbers, devices, masts, of_device)",
        (f"{TEST_SHADOWING}::test_half_of_a_device_s_shadow_is_common_to_all_masts",),
    ),
    Fault(
        "stations on one mast have shadows of their own",
        SHADOWING,
        "masts = np.array([path.mast for path in paths], np.uint64)",
        "masts = np.array([path.station for path in paths], np.uint64)",
        (f"{TEST_SHADOWING}::test_stations_on_one_mast_share_all_shadows",),
    ),
    Fault(
        "two masts have one field of shadows",
        SHADOWING,
        "(number, mast, FIELD_OF_MAST)",
        "(number, 0, FIELD_OF_MAST)",
        (TEST_PLACES,),
    ),
    Fault(
        "waves are as long as on a line, not on a plane",
        WAVES,
        "1.0 / (longer * longer) - 1.0",
        "1.0 / longer - 1.0",
        (f"{TEST_PLACES}::test_correlation_decays_over_distance_as_gudmundson_found",),
    ),
    Fault(
        "waves run in one direction only",
        WAVES,
        "turns = 2 * math.pi * (angles[0] + GOLDEN * order)",
        "turns = 0.0 * order",
        (f"{TEST_PLACES}::test_correlation_decays_over_distance_as_gudmundson_found",),
    ),
    Fault(
        "a field hears of no distance but its reference",
        WAVES,
        "density = bend * np.sqrt(bend)",
        "density = 0 * bend + 1",
        (f"{TEST_PLACES}::test_a_field_has_the_correlation_of_each_distance_that_it_is_asked_for",),
    ),
    Fault(
        "the sum of waves depends on how many are asked for",
        WAVES,
        "        part *= weight[:, None]",
        "        part *= weight[:, None] * (1 + 1e-12 * part.shape[1])",
        (f"{TEST_PLACES}::test_the_shadow_of_a_place_depends_on_seed_mast_place_and_number_only",),
    ),
    Fault(
        "who sees its station has the shadows of who does not",
        STANDARD,
        "self.los_sigma_db(ways.counted_from(self.min_distance_m)), nlos.sigma_db",
        "nlos.sigma_db, nlos.sigma_db",
        (f"{TEST_PLACES}::test_each_device_has_the_shadow_of_its_own_line_of_sight",),
    ),
    Fault(
        "without line of sight less may be lost than with it",
        STANDARD,
        "np.maximum(los_db, self.nlos_db(counted, log_m, log_ghz))",
        "self.nlos_db(counted, log_m, log_ghz)",
        (f"{TEST_STANDARD}::test_without_line_of_sight_no_less_is_lost",),
    ),
    Fault(
        "a street has no corner",
        STANDARD,
        "return part + each(math.exp, -far_m / sight.decay_m) * (1 - part)",
        "return part + each(math.exp, -far_m / sight.decay_m)",
        (TEST_STANDARD,),
    ),
    Fault(
        "the breakpoint counts from the ground",
        URBAN,
        "ENVIRONMENT_M = 1.0",
        "ENVIRONMENT_M = 0.0",
        (TEST_STANDARD,),
    ),
    Fault(
        "nobody sees over a roof",
        URBAN,
        "np.flatnonzero(ways.device_height_m > ROOFS_M)",
        "np.flatnonzero(ways.device_height_m > 10 * ROOFS_M)",
        (TEST_STANDARD,),
    ),
    Fault(
        "a tall mast sees no farther",
        RURAL,
        "log_m - log_of_break)\n",
        "log_m - log_m)\n",
        (TEST_STANDARD,),
    ),
    Fault(
        "dense clutter may be lighter than sparse clutter",
        FACTORY,
        "np.maximum(super().nlos_db(ways, log_m, log_ghz), sparse_db)",
        "super().nlos_db(ways, log_m, log_ghz)",
        (f"{TEST_STANDARD}::test_dense_clutter_is_never_lighter_than_sparse_clutter",),
    ),
    Fault(
        "a station above the clutter sees no farther than one within",
        FACTORY,
        "super().decays_m(ways) * (rise_m / (self.clutter_height_m - ways.device_height_m))",
        "super().decays_m(ways)",
        (TEST_STANDARD,),
    ),
    Fault(
        "line of sight is the device's alone",
        LINK_BUDGET,
        "devices, masts, none, none)[0]",
        "devices, none, none, none)[0]",
        (f"{TEST_STANDARD}::test_line_of_sight_is_drawn_once_for_each_device_and_mast",),
    ),
    Fault(
        "waves meet every wall at a right angle",
        WALLS,
        "ASLANT_DB - 10 * math.log10(passed)",
        "-10 * math.log10(passed)",
        (TEST_WALLS,),
    ),
    Fault(
        "all buildings are the same",
        WALLS,
        "wall_db(model, carrier_hz) + depth_db + drawn_db",
        "wall_db(model, carrier_hz) + depth_db",
        (TEST_WALLS,),
    ),
    Fault(
        "penetration is not told",
        BUDGET,
        "- extra_loss_db - penetration_loss_db",
        "- extra_loss_db - 0 * penetration_loss_db",
        (TEST_WALLS,),
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
        "snr_db = UpDown(median_db.uplink - loss_db",
        "snr_db = UpDown(median_db.uplink + loss_db",
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
        TOPOLOGY,
        "return (name for name, node in relays if node",
        "return (name for name, node in relays if len(self.graph[name]) > 1 and node",
        (TEST_RADIO_PATHS,),
    ),
    Fault(
        "a base station's position depends on servers",
        TOPOLOGY,
        "numbers = {station: number for number, station in enumerate(self._stations)}",
        "numbers = {station: number for number, station in enumerate(self.infrastructure)}",
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
