"""Faults in how generated bearings vibrate."""

from __future__ import annotations

from mutants.fault import Fault

GEOMETRY = "fedsim/data/bearings/geometry.py"
MACHINE = "fedsim/data/bearings/machine.py"
VIBRATION = "fedsim/data/bearings/vibration.py"
DATASET = "fedsim/data/bearings/dataset.py"
FEATURES = "fedsim/data/vibration_features.py"
TESTS = "tests/data/test_bearings.py"
TEST_FEATURES = "tests/data/test_vibration_features.py"
PUBLISHED = f"{TESTS}::test_fault_frequencies_are_the_published_ones"

FAULTS = (
    Fault(
        "inner and outer races change places",
        GEOMETRY,
        "/ 2 * (1 + self._ratio)",
        "/ 2 * (1 - self._ratio)",
        (PUBLISHED,),
    ),
    Fault(
        "the contact angle is left out", GEOMETRY, " * math.cos(math.radians(self.contact_angle_deg))", "", (PUBLISHED,)
    ),
    Fault(
        "a ball strikes once while it turns",
        VIBRATION,
        "_moments(2 * spin_hz",
        "_moments(spin_hz",
        (f"{TESTS}::test_what_turns_is_struck_while_it_is_in_the_load_zone",),
    ),
    Fault(
        "the inner race stands still",
        VIBRATION,
        "load_zone(2 * np.pi * (shaft_hz[:, None] * at_s + turn), machine.loaded)",
        "load_zone(2 * np.pi * turn, machine.loaded) * np.ones_like(at_s)",
        (f"{TESTS}::test_what_turns_is_struck_while_it_is_in_the_load_zone",),
    ),
    Fault(
        "elements do not slip",
        VIBRATION,
        "machine.bearing, shaft_hz * (1 - machine.slip)",
        "machine.bearing, shaft_hz",
        (f"{TESTS}::test_slip_makes_impacts_rarer_and_jitter_makes_them_irregular",),
    ),
    Fault(
        "jitter does not add up",
        VIBRATION,
        "(steps.cumsum(axis=1) - 1 -",
        "(np.arange(most) + steps - 1 -",
        (f"{TESTS}::test_slip_makes_impacts_rarer_and_jitter_makes_them_irregular",),
    ),
    Fault(
        "a spall is left before it is entered",
        VIBRATION,
        "at_s + (size_mm / crossing_mm_s)[:, None], size_g)",
        "at_s, size_g)",
        (f"{TESTS}::test_a_spall_is_entered_and_left",),
    ),
    Fault(
        "large damage is as loud as small",
        VIBRATION,
        " * (size_mm / SIZES_MM[1])",
        "",
        (f"{TESTS}::test_impacts_grow_with_size_and_load",),
    ),
    Fault(
        "knocks are twice as frequent",
        VIBRATION,
        "rng.poisson(machine.knocks_hz * duration_s, windows)",
        "rng.poisson(2 * machine.knocks_hz * duration_s, windows)",
        (f"{TESTS}::test_knocks_are_poissonian_and_have_nothing_to_do_with_bearings",),
    ),
    Fault(
        "noise is of half the power",
        VIBRATION,
        "np.sqrt(power * length / 2)",
        "np.sqrt(power * length / 4)",
        (f"{TESTS}::test_noise_has_the_strength_that_its_law_says",),
    ),
    Fault(
        "the sensor's noise takes the machine's way",
        VIBRATION,
        "machine.noise_g**2 * np.abs(path) ** 2 + machine.sensor_noise_g**2",
        "(machine.noise_g**2 + machine.sensor_noise_g**2) * np.ones(len(path))",
        (f"{TESTS}::test_the_way_to_the_sensor_colours_the_noise",),
    ),
    Fault(
        "the machine's way to the sensor is not of mean square 1",
        MACHINE,
        "response / np.sqrt(np.mean(np.abs(response) ** 2))",
        "response / np.mean(np.abs(response))",
        (f"{TESTS}::test_noise_has_the_strength_that_its_law_says",),
    ),
    Fault(
        "load does not slow the shaft",
        VIBRATION,
        "machine.shaft_hz * (1 - law.droop * load)",
        "machine.shaft_hz * np.ones_like(load)",
        (f"{TESTS}::test_load_slows_the_shaft",),
    ),
    Fault(
        "measurements beyond the range go round",
        DATASET,
        "np.clip(steps, -STEPS, STEPS - 1).astype(np.int16)",
        "steps.astype(np.int64).astype(np.int16)",
        (f"{TESTS}::test_what_is_beyond_the_sensors_range_is_cut",),
    ),
    Fault(
        "an envelope is half as large as it is",
        FEATURES,
        "envelope = 2 * np.abs(",
        "envelope = np.abs(",
        (f"{TEST_FEATURES}::test_a_modulation_is_a_line_of_its_size",),
    ),
    Fault(
        "envelopes are of the shaft's harmonics, too",
        FEATURES,
        ">= BAND_FROM_HZ",
        ">= 0",
        (f"{TEST_FEATURES}::test_what_is_below_the_band_is_not_seen",),
    ),
    Fault(
        "the first frequency is zero",
        FEATURES,
        "[:, 1 : bins + 1]",
        "[:, :bins]",
        (f"{TEST_FEATURES}::test_a_modulation_is_a_line_of_its_size",),
    ),
    Fault(
        "spectra are of what a sensor without limits measures",
        DATASET,
        "envelope_spectra(in_steps(x, RANGE_G) * (RANGE_G / STEPS), SAMPLE_RATE_HZ)",
        "envelope_spectra(x, SAMPLE_RATE_HZ) * 1.05",
        (f"{TESTS}::test_a_sensor_may_send_the_spectrum_of_the_envelope",),
    ),
)
