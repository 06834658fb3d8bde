"""What is lost on the way: Friis' published numbers, the laws of both models, and where each begins to hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim import registry
from fedsim.errors import UserError
from fedsim.radio.path_loss import FreeSpace, LogDistance, PathLossSettings, free_space_db, wavelength_m

MODELS: dict[str, PathLossSettings] = {
    "free_space": FreeSpace(),
    "log_distance": LogDistance(exponent=3.0),
}


def itu_free_space_db(distance_km: float, carrier_mhz: float) -> float:
    """ITU-R P.525-4: 32.4 + 20 log f + 20 log d, with the frequency in MHz and the distance in km."""
    return 32.4 + 20 * math.log10(carrier_mhz) + 20 * math.log10(distance_km)


@pytest.mark.parametrize(
    ("distance_m", "carrier_hz", "loss_db"),
    [
        (100, 2.4e9, 80.05),  # 20 log10(4 pi 100 m / 0.12491 m), by hand: 20 log10(10060.0)
        (1_000, 2.4e9, 100.05),  # ten times as far
        (1, 1e9, 32.45),  # the constant of the usual form, 32.45 + 20 log f (GHz) + 20 log d (m)
    ],
)
def test_friis_loss_is_what_is_published(distance_m: float, carrier_hz: float, loss_db: float) -> None:
    assert FreeSpace().loss_db(distance_m, carrier_hz) == pytest.approx(loss_db, abs=0.005)


@pytest.mark.parametrize("distance_km", [0.01, 1.0, 35.0])
@pytest.mark.parametrize("carrier_mhz", [450.0, 900.0, 3_700.0])
def test_friis_loss_is_the_itu_s(distance_km: float, carrier_mhz: float) -> None:
    here = FreeSpace().loss_db(1e3 * distance_km, 1e6 * carrier_mhz)
    assert here == pytest.approx(itu_free_space_db(distance_km, carrier_mhz), abs=0.05)  # the ITU prints 32.4


def test_doubling_the_distance_or_the_carrier_costs_6_db_in_free_space() -> None:
    loss_db = FreeSpace().loss_db(100, 2e9)
    assert FreeSpace().loss_db(200, 2e9) - loss_db == pytest.approx(20 * math.log10(2))
    assert FreeSpace().loss_db(100, 4e9) - loss_db == pytest.approx(6.02, abs=0.001)


@given(distance_m=st.floats(1, 1e6), carrier_hz=st.floats(4e8, 1e11))
def test_log_distance_at_exponent_2_is_free_space(distance_m: float, carrier_hz: float) -> None:
    same_db = LogDistance(exponent=2.0).loss_db(distance_m, carrier_hz)
    assert same_db == pytest.approx(FreeSpace().loss_db(distance_m, carrier_hz), abs=1e-9)


@given(exponent=st.floats(1.5, 6), distance_m=st.floats(10, 1e4))
def test_ten_times_the_distance_costs_ten_times_the_exponent(exponent: float, distance_m: float) -> None:
    model = LogDistance(exponent=exponent)
    step_db = model.loss_db(10 * distance_m, 1e9) - model.loss_db(distance_m, 1e9)
    assert step_db == pytest.approx(10 * exponent, abs=1e-9)


def test_the_reference_loss_is_where_the_law_begins() -> None:
    """Free space at 1 m and 914 MHz is 20 log10(4 pi / 0.328) = 31.67 dB; two decades at exponent 3 add 60 dB."""
    assert LogDistance(exponent=3.0).loss_db(100.0, 914e6) == pytest.approx(91.67, abs=0.005)
    assert LogDistance(exponent=3.0, reference_loss_db=40.0).loss_db(100.0, 914e6) == pytest.approx(100.0)


def test_a_given_reference_loss_holds_at_the_reference_distance_whatever_the_carrier() -> None:
    model = LogDistance(exponent=3.0, reference_distance_m=1_000.0, reference_loss_db=120.9)
    assert model.loss_db(1_000.0, 0.9e9) == model.loss_db(1_000.0, 3.7e9) == 120.9


def test_every_model_is_tried_here() -> None:
    assert set(MODELS) == set(registry.names("path_losses"))


@pytest.mark.parametrize("name", MODELS)
@given(one_m=st.floats(1, 1e5), other_m=st.floats(1, 1e5))
def test_farther_is_never_less_lost(name: str, one_m: float, other_m: float) -> None:
    assume(one_m != other_m)
    nearer_m, farther_m = sorted((one_m, other_m))
    assert MODELS[name].loss_db(nearer_m, 1e9) <= MODELS[name].loss_db(farther_m, 1e9)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_holds_from_its_nearest_distance_on_and_not_before(name: str) -> None:
    model, nearest_m = MODELS[name], MODELS[name].nearest_m(1e9)
    assert model.loss_db(nearest_m, 1e9) > 0
    with pytest.raises(UserError, match=f"{name} holds from {nearest_m:.3g} m on, and the distance is "):
        model.loss_db(0.99 * nearest_m, 1e9)
    with pytest.raises(UserError, match=r"the distance is 0 m; move one of the two, or let nearer devices count as"):
        model.loss_db(0.0, 1e9)


@pytest.mark.parametrize("name", MODELS)
def test_nearer_devices_may_count_as_being_at_the_minimum_distance(name: str) -> None:
    model = type(MODELS[name])(**{**MODELS[name].model_dump(), "min_distance_m": 10.0})
    assert model.loss_db(0.0, 1e9) == model.loss_db(9.99, 1e9) == model.loss_db(10.0, 1e9)
    assert model.loss_db(10.01, 1e9) > model.loss_db(10.0, 1e9)


@pytest.mark.parametrize("name", MODELS)
def test_a_minimum_distance_stretches_no_model(name: str) -> None:
    model = type(MODELS[name])(**{**MODELS[name].model_dump(), "min_distance_m": 0.01})
    with pytest.raises(UserError, match="and the distance is 0.01 m"):
        model.loss_db(0.0, 1e9)


def test_free_space_begins_at_a_wavelength() -> None:
    assert wavelength_m(0.9e9) == pytest.approx(0.3331, abs=1e-4)
    assert FreeSpace().nearest_m(0.9e9) == wavelength_m(0.9e9)
    assert free_space_db(wavelength_m(0.9e9), 0.9e9) == pytest.approx(20 * math.log10(4 * math.pi))


def test_a_reference_in_the_near_field_needs_its_loss() -> None:
    message = r"reference_distance_m=0.5 is nearer than a wavelength \(0.666 m\).*; set it farther away, or give"
    with pytest.raises(UserError, match=message):
        LogDistance(exponent=2.0, reference_distance_m=0.5).loss_db(100.0, 450e6)
    given = LogDistance(exponent=2.0, reference_distance_m=0.5, reference_loss_db=20.0)
    assert given.loss_db(5.0, 450e6) == pytest.approx(40.0)


@pytest.mark.parametrize(
    "keys",
    [
        {"exponent": 0.0},
        {"exponent": math.inf},
        {"reference_distance_m": 0.0},
        {"min_distance_m": -1.0},
        {"sigma_db": 4.0},
    ],
)
def test_a_model_that_makes_no_sense_is_refused(keys: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        LogDistance(**{"exponent": 2.0, **keys})


def test_the_reference_loss_is_that_of_free_space_at_the_reference_distance() -> None:
    assert LogDistance(exponent=3.0, reference_distance_m=10.0).loss_db(10.0, 0.9e9) == free_space_db(10.0, 0.9e9)
    beyond_db = LogDistance(exponent=3.0, reference_distance_m=10.0).loss_db(100.0, 0.9e9) - free_space_db(10.0, 0.9e9)
    assert beyond_db == pytest.approx(30.0, abs=1e-12)
