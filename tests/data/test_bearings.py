"""Bearings vibrate by their stated law: geometry, impacts, load, the way to the sensor, and who has which damage."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy.stats import kurtosis

from fedsim.data.bearings.dataset import BASE, Bearings, in_steps
from fedsim.data.bearings.geometry import BEARINGS, Bearing
from fedsim.data.bearings.machine import LAW, SAMPLE_RATE_HZ, UNIFORM, Machine, drawn_machine
from fedsim.data.bearings.vibration import CONDITIONS, FAULTS, SIZES_MM, load_zone, vibration
from fedsim.data.raw_dataset import Clients
from fedsim.data.vibration_features import envelope_spectra, normalised_rows
from fedsim.errors import UserError

WINDOW = 2048
BIN_HZ = SAMPLE_RATE_HZ / WINDOW
STEADY = replace(LAW, load=(1.0, 1.0))
ONE_IMPACT_ONLY = replace(STEADY, jitter=0.0, impact_spread=0.0, entry=0.0, other_race=1.0)
QUIET = {"noise_g": 0.0, "sensor_noise_g": 0.0, "knocks_hz": 0.0, "harmonics_g": np.zeros(3), "slip": 0.0}


def machine(number: int = 0, **changes: object) -> Machine:
    return replace(drawn_machine(np.random.default_rng([7, number])), **changes)


def condition(fault: str, size_mm: float = 0.53) -> int:
    return CONDITIONS.index((fault, size_mm if fault != "normal" else 0.0))


def windows(of: Machine, fault: str, number: int = 64, law=STEADY, window: int = WINDOW, size_mm=0.53) -> NDArray:
    return vibration(of, np.full(number, condition(fault, size_mm)), window, np.random.default_rng(11), law)


def envelope_spectrum(x: NDArray, low_hz: float = 1500.0, high_hz: float = 5800.0) -> NDArray:
    """(frequencies,) mean power of the windows' envelopes: the band around the resonances, its analytic signal's size,
    and a Hann window."""
    spectra = np.fft.fft(x - x.mean(axis=1, keepdims=True))
    frequencies = np.fft.fftfreq(x.shape[1], 1 / SAMPLE_RATE_HZ)
    analytic = np.fft.ifft(np.where((frequencies >= low_hz) & (frequencies <= high_hz), 2 * spectra, 0))
    envelope = np.abs(analytic)
    envelope -= envelope.mean(axis=1, keepdims=True)
    return (np.abs(np.fft.rfft(envelope * np.hanning(x.shape[1]))) ** 2).mean(axis=0)


GOLDEN = [
    [-287, 375, 1102, -1609, 652, -480, -420, -148, -1358, -129],
    [385, -706, -241, -232, -47, 831, 1050, -402, -2832, -906],
]


# --- geometry ---

PUBLISHED = {
    "6205": (3.5848, 5.4152, 0.39828, 4.7135),  # Case Western Reserve University, in parts of the shaft's frequency
    "6203": (3.0530, 4.9469, 0.3817, 3.9874),
    "ZA-2115": (236.4 / 33.33, 296.9 / 33.33, 14.78 / 33.33, 2 * 139.9 / 33.33),  # IMS, at 2,000 turns a minute
    "6804": (168.3 / 30, 221.7 / 30, 12.95 / 30, None),  # PRONOSTIA, at 1,800 turns a minute
    "NICE": (81.12 / 25, 118.88 / 25, None, None),  # MFPT, at 1,500 turns a minute
}


@pytest.mark.parametrize("bearing", BEARINGS, ids=lambda bearing: bearing.name)
def test_fault_frequencies_are_the_published_ones(bearing: Bearing) -> None:
    ours = bearing.outer, bearing.inner, bearing.cage, 2 * bearing.spin
    for made, published in zip(ours, PUBLISHED[bearing.name], strict=True):
        assert published is None or made == pytest.approx(published, rel=2e-3)


@pytest.mark.parametrize("bearing", BEARINGS, ids=lambda bearing: bearing.name)
def test_each_element_passes_either_race_once_while_the_cage_turns_once_past_it(bearing: Bearing) -> None:
    """BPFO = n FTF and BPFI = n (f_r - FTF); rolling on the outer race: BSF d = FTF D (1 + d/D cos phi)."""
    ratio = bearing.element_mm / bearing.pitch_mm * math.cos(math.radians(bearing.contact_angle_deg))
    assert bearing.outer == pytest.approx(bearing.elements * bearing.cage)
    assert bearing.inner == pytest.approx(bearing.elements * (1 - bearing.cage))
    assert bearing.spin * bearing.element_mm == pytest.approx(bearing.cage * bearing.pitch_mm * (1 + ratio))


# --- what a window shows ---


@pytest.mark.parametrize("bearing", BEARINGS, ids=lambda bearing: bearing.name)
@pytest.mark.parametrize("fault", FAULTS[1:])
def test_the_envelope_spectrum_peaks_at_the_formulas_frequency(fault: str, bearing: Bearing) -> None:
    """The highest peak between 2.5 and 12 times the shaft's frequency is within one bin (5.9 Hz) of it, with noise,
    knocks and slip as they are."""
    of = machine(list(BEARINGS).index(bearing), bearing=bearing)
    rolled_hz = of.shaft_hz * (1 - LAW.droop) * (1 - of.slip)
    expected_hz = {"outer race": bearing.outer, "inner race": bearing.inner, "ball": 2 * bearing.spin}[
        fault
    ] * rolled_hz
    power, frequency_hz = envelope_spectrum(windows(of, fault)), np.arange(WINDOW // 2 + 1) * BIN_HZ
    there = (frequency_hz > 2.5 * rolled_hz) & (frequency_hz < 12 * rolled_hz)
    peak_hz = frequency_hz[there][power[there].argmax()]
    assert abs(peak_hz - expected_hz) <= BIN_HZ


def test_a_sound_bearing_has_no_peak() -> None:
    """Where the three faults would have theirs, a sound one is below a twentieth of theirs."""
    of, frequency_hz = machine(), np.arange(WINDOW // 2 + 1) * BIN_HZ
    sound = envelope_spectrum(windows(of, "normal"))
    there = (frequency_hz > 2.5 * of.shaft_hz) & (frequency_hz < 12 * of.shaft_hz)
    for fault in FAULTS[1:]:
        assert sound[there].max() < envelope_spectrum(windows(of, fault))[there].max() / 20


def ticks(of: Machine, fault: str, law=ONE_IMPACT_ONLY, window: int = 8192, size_mm=0.53) -> NDArray:
    """(impacts,) places, in measurements, of the impacts of one window: the way to the sensor is left out."""
    flat = _Direct(**{field.name: getattr(of, field.name) for field in fields(of)})
    x = vibration(flat, np.array([condition(fault, size_mm)]), window, np.random.default_rng(11), law)[0]
    at = np.flatnonzero(x > 1e-9)
    groups = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)  # an impact lies between two measurements
    return np.array([(x[group] * group).sum() / x[group].sum() for group in groups])


class _Direct(Machine):
    """A machine whose sensor sees impacts as they are."""

    __slots__ = ()

    def path(self, frequency_hz: NDArray[np.float64]) -> NDArray[np.complex128]:
        return np.ones(len(frequency_hz), complex)


def test_impacts_come_as_often_as_the_formulas_say() -> None:
    """Without jitter every interval is 1 / f, on an outer race, where none is outside the load zone."""
    of = machine(gain=1.0, **QUIET)
    places = ticks(of, "outer race")
    f_hz = of.bearing.outer * of.shaft_hz * (1 - LAW.droop)
    assert len(places) == pytest.approx(8192 / SAMPLE_RATE_HZ * f_hz, abs=1.5)
    assert np.diff(places) == pytest.approx(SAMPLE_RATE_HZ / f_hz, rel=1e-6)


def test_slip_makes_impacts_rarer_and_jitter_makes_them_irregular() -> None:
    of = machine(gain=1.0, **QUIET)
    plain, slipping = np.diff(ticks(of, "outer race")), np.diff(ticks(replace(of, slip=0.1), "outer race"))
    assert slipping.mean() == pytest.approx(plain.mean() / 0.9, rel=1e-6)
    law = replace(ONE_IMPACT_ONLY, jitter=0.02)
    uneven = np.concatenate([np.diff(ticks(of, "outer race", law, window)) for window in range(8000, 8192, 8)])
    assert uneven.mean() == pytest.approx(plain.mean(), rel=0.005)
    assert uneven.std() == pytest.approx(0.02 * plain.mean(), rel=0.1)


@pytest.mark.parametrize(("fault", "turning"), [("inner race", "shaft"), ("ball", "cage")])
def test_what_turns_is_struck_while_it_is_in_the_load_zone(fault: str, turning: str) -> None:
    """With a zone of half of the circle, impacts come in bursts, once in a turn of the shaft, or of the cage."""
    of = machine(gain=1.0, loaded=0.5, **QUIET)
    places = ticks(of, fault)
    shaft_hz = of.shaft_hz * (1 - LAW.droop)
    turn_hz = shaft_hz if turning == "shaft" else of.bearing.cage * shaft_hz
    struck_hz = of.bearing.inner * shaft_hz if fault == "inner race" else 2 * of.bearing.spin * shaft_hz
    begins = places[1:][np.diff(places) > 1.5 * SAMPLE_RATE_HZ / struck_hz]
    assert len(begins) == pytest.approx(8192 / SAMPLE_RATE_HZ * turn_hz, abs=1.5)
    assert np.diff(begins).mean() == pytest.approx(SAMPLE_RATE_HZ / turn_hz, rel=0.05)
    assert len(places) / (8192 / SAMPLE_RATE_HZ * struck_hz) == pytest.approx(0.5, abs=0.08)


def test_the_load_zone_is_stribecks() -> None:
    angle = np.linspace(-np.pi, np.pi, 721)
    for extent in (0.5, 0.75):
        load, edge = load_zone(angle, extent), math.acos(1 - 2 * extent)
        assert load.max() == load[360] == 1
        assert np.array_equal(load > 1e-6, np.abs(angle) < edge - 1e-3)
        assert load[360 + 60] == pytest.approx((1 - (1 - math.cos(math.pi / 6)) / (2 * extent)) ** 1.5)


def test_a_spall_is_entered_and_left() -> None:
    """0.53 mm at the speed of the elements' centres, pi D FTF, on the outer race: a second impact so much later."""
    of = machine(gain=1.0, shaft_modulation=0.0, fault_angle_rad=0.0, **QUIET)
    both = ticks(of, "outer race", replace(ONE_IMPACT_ONLY, entry=0.4))
    cage_hz = of.bearing.cage * of.shaft_hz * (1 - LAW.droop)
    crossing = 0.53 / (math.pi * of.bearing.pitch_mm * cage_hz) * SAMPLE_RATE_HZ
    assert crossing > 2.5  # measurements, so that they stand apart
    assert min(np.diff(both)) == pytest.approx(crossing, rel=1e-4)
    assert len(both) == pytest.approx(2 * len(ticks(of, "outer race")), abs=1)


def test_impacts_grow_with_size_and_load() -> None:
    """Energy goes with the square of both; without noise, on the outer race. Larger places are left a little later, and
    so elsewhere between two measurements: within 3 %."""
    of = machine(gain=1.0, **QUIET)

    def energy(size_mm: float = 0.36, load: float = 1.0) -> float:
        law = replace(ONE_IMPACT_ONLY, load=(load, load), droop=0.0)
        return float((windows(of, "outer race", 64, law, size_mm=size_mm) ** 2).mean())

    for size_mm in SIZES_MM:
        assert energy(size_mm) == pytest.approx((size_mm / 0.36) ** 2 * energy(), rel=0.03)
    assert energy(load=0.5) == pytest.approx(0.25 * energy(), rel=1e-6)


def test_noise_has_the_strength_that_its_law_says() -> None:
    """256 windows: the machine's 0.1 g behind its way to the sensor (mean square 1), and the sensor's 0.05 g."""
    of = machine(gain=1.0, **QUIET | {"noise_g": 0.1, "sensor_noise_g": 0.05})
    x = windows(of, "normal", 256)
    assert (x**2).mean() == pytest.approx(0.1**2 + 0.05**2, rel=0.02)
    assert abs(kurtosis(x.ravel())) < 0.1


def test_the_way_to_the_sensor_colours_the_noise() -> None:
    of = machine(gain=1.0, **QUIET | {"noise_g": 0.1})
    hann = np.hanning(WINDOW)
    power = (np.abs(np.fft.rfft(windows(of, "normal", 800) * hann)) ** 2).mean(axis=0) / (hann**2).sum()
    frequency_hz, fine_hz = np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE_HZ), np.linspace(0, 6000, 1281)
    passed = np.abs(of.path(fine_hz)) ** 2
    assert passed.mean() == pytest.approx(1)
    for low_hz, high_hz in ((100, 500), (800, 1200), (2000, 3000), (4000, 5000)):
        expected = 0.01 * passed[(fine_hz > low_hz) & (fine_hz < high_hz)].mean()
        found = power[(frequency_hz > low_hz) & (frequency_hz < high_hz)].mean()
        assert found == pytest.approx(expected, rel=0.05)


def test_the_way_to_the_sensor_resonates_where_its_modes_are() -> None:
    """One mode and a mount that is far away: the peak is at the mode, and as wide as its damping says (2 zeta f)."""
    of = machine(
        modes_hz=np.array([2000.0]), damping=np.array([0.05]), mode_strength=np.ones(1), mount_hz=1e6, mount_damping=0.1
    )
    frequency_hz = np.linspace(1, 6000, 6000)
    power = np.abs(of.path(frequency_hz)) ** 2
    assert frequency_hz[power.argmax()] == pytest.approx(2000, rel=0.01)
    above = frequency_hz[power > power.max() / 2]
    assert above.max() - above.min() == pytest.approx(2 * 0.05 * 2000, rel=0.05)


def test_knocks_are_poissonian_and_have_nothing_to_do_with_bearings() -> None:
    """5 a second for 2,000 windows: each adds the energy of its size, whose mean is exp(2 s^2) times the median's."""
    of = machine(gain=1.0, **QUIET | {"knocks_hz": 5.0})
    law = replace(STEADY, knock_g=2.0, knock_spread=0.2)
    x = windows(of, "normal", 2000, law)
    expected = 5.0 * 2.0**2 * math.exp(2 * 0.2**2) / SAMPLE_RATE_HZ
    assert (x**2).mean() == pytest.approx(expected * 2 / 3, rel=0.1)  # on average, halves of two neighbours: 2/3


def test_harmonics_are_at_the_shafts_frequency_and_its_multiples() -> None:
    of = machine(gain=2.0, **QUIET | {"harmonics_g": np.array([0.3, 0.2, 0.1])})
    x = windows(of, "normal", 8, window=8192)
    shaft_hz = of.shaft_hz * (1 - LAW.droop)
    t = np.arange(8192) / SAMPLE_RATE_HZ
    for order, size_g in enumerate((0.3, 0.2, 0.1), start=1):
        found = 2 * np.abs((x * np.hanning(8192) * np.exp(-2j * np.pi * order * shaft_hz * t)).sum(axis=1)) / 4095.5
        assert found == pytest.approx(2.0 * size_g, rel=0.02)


def test_load_slows_the_shaft() -> None:
    of = machine(gain=1.0, **QUIET)
    full, idle = (
        np.diff(ticks(of, "outer race", replace(ONE_IMPACT_ONLY, load=(load, load)))).mean() for load in (1.0, 0.0001)
    )
    assert idle / full == pytest.approx(1 - LAW.droop, rel=1e-3)


# --- machines ---


def test_machines_follow_their_law() -> None:
    """4,000 of them; means and spreads within four standard errors."""
    drawn = [machine(number) for number in range(4000)]
    places = {name: np.array([getattr(one, name) for one in drawn]) for name in UNIFORM}
    for name, values in places.items():
        low, high = getattr(LAW, name)
        _assert_uniform((values - low) / (high - low))
    for position, (low, high) in enumerate(LAW.modes_hz):
        _assert_uniform((np.array([one.modes_hz[position] for one in drawn]) - low) / (high - low))
        damping = np.array([one.damping[position] for one in drawn])
        _assert_uniform((damping - LAW.damping[0]) / (LAW.damping[1] - LAW.damping[0]))
    spreads = {"strength": LAW.strength_spread, "gain": LAW.gain_spread}
    logarithms = {name: np.log([getattr(one, name) for one in drawn]) / spread for name, spread in spreads.items()}
    logarithms["modes"] = np.log([one.mode_strength[0] for one in drawn]) / LAW.mode_spread
    logarithms["harmonics"] = np.log([one.harmonics_g[2] / 0.03 for one in drawn]) / LAW.harmonics_spread
    for values in logarithms.values():
        assert abs(values.mean()) < 4 / math.sqrt(4000)
        assert values.std() == pytest.approx(1, abs=4 / math.sqrt(8000))
    counts = np.bincount([BEARINGS.index(one.bearing) for one in drawn])
    assert ((counts - 800) ** 2 / 800).sum() < 18.5  # chi-square with 4 degrees of freedom: the 99.9th percentile


def _assert_uniform(values: NDArray) -> None:
    assert 0 <= values.min() < 0.01 < 0.99 < values.max() <= 1
    assert abs(values.mean() - 0.5) < 4 * math.sqrt(1 / 12 / len(values))
    assert abs(values.var() - 1 / 12) < 4 * math.sqrt(1 / 180 / len(values))


# --- the data set ---

FEW = {"windows_per_machine": 12.0, "window": 512}


def loaded(streams, count: int = 4, factories=None, seed: int = 1, **options):
    clients = Clients(count, None if factories is None else np.array(factories))
    return Bearings.model_validate(FEW | options).load(clients, streams(seed))


def test_samples_are_what_a_machine_sends(streams) -> None:
    data = loaded(streams)
    assert (data.classes, data.class_names, data.sample_shape) == (4, FAULTS, (1, 512))
    assert FAULTS[data.sound_class] == "normal"
    assert (data.x.dtype, data.sample_bytes) == (np.int16, 2 * 512 + 1)
    x = data.samples(np.arange(len(data.y)))
    assert x.mean(axis=2) == pytest.approx(0, abs=1e-3)
    assert x.std(axis=2) == pytest.approx(1, abs=1e-3)


def test_without_normalisation_they_are_g(streams) -> None:
    """The same windows but for gain and place, within the steps of both."""
    plain, whole = loaded(streams, normalise="none"), loaded(streams)
    g = plain.samples(np.arange(len(plain.y)))
    assert 0.05 < g.std() < 2
    again = (g - g.mean(axis=2, keepdims=True)) / g.std(axis=2, keepdims=True)
    assert again == pytest.approx(whole.samples(np.arange(len(plain.y))), abs=0.02)


def test_a_sensor_may_send_the_spectrum_of_the_envelope(streams) -> None:
    """Up to 1.5 kHz: an eighth of the numbers, and on the wire."""
    data, plain = loaded(streams, features="envelope_spectrum"), loaded(streams, normalise="none")
    assert (data.sample_shape, data.sample_bytes) == ((1, 64), 2 * 64 + 1)
    ids = np.arange(len(data.y))
    expected = normalised_rows(envelope_spectra(plain.samples(ids)[:, 0], SAMPLE_RATE_HZ))
    assert data.samples(ids)[:, 0] == pytest.approx(expected, abs=0.003)  # a step is 1/256
    g = loaded(streams, features="envelope_spectrum", normalise="none").samples(ids)[:, 0]
    assert g == pytest.approx(envelope_spectra(plain.samples(ids)[:, 0], SAMPLE_RATE_HZ), abs=2e-4)


def test_sizes_are_classes_of_the_same_windows(streams) -> None:
    types, sizes = loaded(streams), loaded(streams, classes="type_size")
    assert np.array_equal(types.x, sizes.x)
    assert sizes.class_names == (
        "normal",
        *(f"{fault} {size} mm" for fault in ("outer race", "inner race", "ball") for size in ("0.18", "0.36", "0.53")),
    )
    assert np.array_equal(types.y, [FAULTS.index(CONDITIONS[number].fault) for number in sizes.y])


def test_a_quarter_is_sound_and_all_damage_is_as_frequent(streams) -> None:
    assert BASE.sum() == pytest.approx(1)
    none = {"factory_preference": math.inf, "machine_preference": math.inf, "windows_spread": 0.0, "window": 256}
    raw = Bearings.model_validate({**none, "windows_per_machine": 4000.0, "classes": "type_size"}).raw(
        Clients(2), streams(1)
    )
    counts = np.bincount(raw.y, minlength=10)
    assert ((counts - 8000 * BASE) ** 2 / (8000 * BASE)).sum() < 27.9  # 9 degrees of freedom, the 99.9th percentile


def test_a_machine_does_not_depend_on_how_many_others_there_are(streams) -> None:
    few, many = loaded(streams, 2), loaded(streams, 6)
    for client in (0, 1):
        one, other = few.train_ids[client], many.train_ids[client]
        held = np.union1d(one, few.client_test_ids[client])
        assert np.array_equal(few.x[held], many.x[np.union1d(other, many.client_test_ids[client])])


def test_machines_of_a_factory_prefer_what_it_has(streams) -> None:
    options = {"factory_preference": 0.1, "machine_preference": math.inf, "windows_per_machine": 200.0}
    made = Bearings.model_validate(FEW | options).raw(Clients(4, np.array([0, 0, 1, 1])), streams(1))
    shares = np.array([np.bincount(made.y[made.owner == owner], minlength=4) for owner in range(4)])
    shares = shares / shares.sum(axis=1, keepdims=True)
    apart = np.abs(shares[:, None] - shares[None]).sum(axis=2) / 2
    assert max(apart[0, 1], apart[2, 3]) < 0.15 < 0.3 < apart[:2, 2:].min()


def test_some_windows_are_made_alone_and_are_the_same(streams) -> None:
    some, whole = loaded(streams), loaded(streams)
    ids = np.array([1, 5, 20, 33])
    assert np.array_equal(some.rows(ids), whole.x[ids])
    assert "x" not in vars(some)


def test_what_is_beyond_the_sensors_range_is_cut() -> None:
    assert in_steps(np.array([17.0, -17.0, 1.0]), 16.0).tolist() == [32767, -32768, 2048]


def test_the_largest_value_of_a_normalised_window_can_be_stored() -> None:
    """One that stands out of a longest window, as far as any can: the square root of 8192, less one."""
    x = np.zeros((1, 8192))
    x[0, 0] = 1.0
    assert in_steps(normalised_rows(x), 128.0).max() == round(math.sqrt(8191) * 2**15 / 128) < 2**15 - 1


@pytest.mark.parametrize(
    "options",
    [
        {"window": 255},
        {"window": 8193},
        {"windows_per_machine": 9.0},
        {"windows_spread": -0.1},
        {"machine_preference": 0.0},
        {"factory_preference": math.nan},
        {"classes": "size"},
        {"normalise": "minmax"},
    ],
)
def test_a_key_outside_its_range_is_refused(options) -> None:
    with pytest.raises(ValidationError):
        Bearings.model_validate(options)


def test_more_windows_than_memory_holds_are_refused(streams) -> None:
    with pytest.raises(UserError, match="100000 windows of 2048 measurements of each of 20 machines are about 4,096"):
        Bearings(windows_per_machine=1e5).load(Clients(20), streams(1))


def test_the_law_has_not_moved() -> None:
    """Sums over windows of two machines, kept as they were when the difficulty was set."""
    found = []
    for number in range(2):
        rng = np.random.Generator(np.random.Philox(key=number))
        of = drawn_machine(rng)
        made = Bearings(window=512, normalise="none").measured(of, np.arange(10), rng)
        found += [made.astype(np.int64)[:, ::100].sum(axis=1)]
    assert np.abs(np.array(found) - GOLDEN).max() <= 2
