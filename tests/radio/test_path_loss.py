"""What is lost on the way: Friis' published numbers, the laws of both models, and where each begins to hold."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim import registry
from fedsim.errors import UserError
from fedsim.radio.propagation.path_loss import OutOfRange, PathLossSettings, Ways
from fedsim.radio.propagation.simple import FreeSpace, GivenLoss, LogDistance, free_space_db, wavelength_m

MODELS: dict[str, PathLossSettings] = {
    "free_space": FreeSpace(),
    "log_distance": LogDistance(exponent=3.0),
}
STANDARD = {"uma", "umi", "rma", "inh_open", "inh_mixed", "inf_sl", "inf_dl", "inf_sh", "inf_dh", "inf_hh"}
"""Tried in test_tr38901.py."""


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
    assert FreeSpace().over_db(distance_m, carrier_hz) == pytest.approx(loss_db, abs=0.005)


@pytest.mark.parametrize("distance_km", [0.01, 1.0, 35.0])
@pytest.mark.parametrize("carrier_mhz", [450.0, 900.0, 3_700.0])
def test_friis_loss_is_the_itu_s(distance_km: float, carrier_mhz: float) -> None:
    here = FreeSpace().over_db(1e3 * distance_km, 1e6 * carrier_mhz)
    assert here == pytest.approx(itu_free_space_db(distance_km, carrier_mhz), abs=0.05)  # the ITU prints 32.4


def test_doubling_the_distance_or_the_carrier_costs_6_db_in_free_space() -> None:
    loss_db = FreeSpace().over_db(100, 2e9)
    assert FreeSpace().over_db(200, 2e9) - loss_db == pytest.approx(20 * math.log10(2))
    assert FreeSpace().over_db(100, 4e9) - loss_db == pytest.approx(6.02, abs=0.001)


@given(distance_m=st.floats(1, 1e6), carrier_hz=st.floats(4e8, 1e11))
def test_log_distance_at_exponent_2_is_free_space(distance_m: float, carrier_hz: float) -> None:
    same_db = LogDistance(exponent=2.0).over_db(distance_m, carrier_hz)
    assert same_db == pytest.approx(FreeSpace().over_db(distance_m, carrier_hz), abs=1e-9)


@given(exponent=st.floats(1.5, 6), distance_m=st.floats(10, 1e4))
def test_ten_times_the_distance_costs_ten_times_the_exponent(exponent: float, distance_m: float) -> None:
    model = LogDistance(exponent=exponent)
    step_db = model.over_db(10 * distance_m, 1e9) - model.over_db(distance_m, 1e9)
    assert step_db == pytest.approx(10 * exponent, abs=1e-9)


def test_the_reference_loss_is_where_the_law_begins() -> None:
    """Free space at 1 m and 914 MHz is 20 log10(4 pi / 0.328) = 31.67 dB; two decades at exponent 3 add 60 dB."""
    assert LogDistance(exponent=3.0).over_db(100.0, 914e6) == pytest.approx(91.67, abs=0.005)
    assert LogDistance(exponent=3.0, reference_loss_db=40.0).over_db(100.0, 914e6) == pytest.approx(100.0)


def test_a_given_reference_loss_holds_at_the_reference_distance_whatever_the_carrier() -> None:
    model = LogDistance(exponent=3.0, reference_distance_m=1_000.0, reference_loss_db=120.9)
    assert model.over_db(1_000.0, 0.9e9) == model.over_db(1_000.0, 3.7e9) == 120.9


def test_every_model_is_tried_here() -> None:
    assert {*MODELS, *STANDARD, "given"} == set(registry.names("path_losses"))


@pytest.mark.parametrize("name", MODELS)
@given(one_m=st.floats(1, 1e5), other_m=st.floats(1, 1e5))
def test_farther_is_never_less_lost(name: str, one_m: float, other_m: float) -> None:
    assume(one_m != other_m)
    nearer_m, farther_m = sorted((one_m, other_m))
    assert MODELS[name].over_db(nearer_m, 1e9) <= MODELS[name].over_db(farther_m, 1e9)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_holds_from_its_nearest_distance_on_and_not_before(name: str) -> None:
    model, nearest_m = MODELS[name], MODELS[name].nearest_m(1e9)
    assert model.over_db(nearest_m, 1e9) > 0
    with pytest.raises(UserError, match=f"{name} holds from {nearest_m:.3g} m on, and the distance is "):
        model.over_db(0.99 * nearest_m, 1e9)
    with pytest.raises(UserError, match=r"the distance is 0 m; move one of the two, or let nearer devices count as"):
        model.over_db(0.0, 1e9)


@pytest.mark.parametrize("name", MODELS)
def test_nearer_devices_may_count_as_being_at_the_minimum_distance(name: str) -> None:
    model = type(MODELS[name])(**{**MODELS[name].model_dump(), "min_distance_m": 10.0})
    assert model.over_db(0.0, 1e9) == model.over_db(9.99, 1e9) == model.over_db(10.0, 1e9)
    assert model.over_db(10.01, 1e9) > model.over_db(10.0, 1e9)


@pytest.mark.parametrize("name", MODELS)
def test_a_minimum_distance_stretches_no_model(name: str) -> None:
    model = type(MODELS[name])(**{**MODELS[name].model_dump(), "min_distance_m": 0.01})
    with pytest.raises(UserError, match="and the distance is 0.01 m"):
        model.over_db(0.0, 1e9)


def test_free_space_begins_at_a_wavelength() -> None:
    assert wavelength_m(0.9e9) == pytest.approx(0.3331, abs=1e-4)
    assert FreeSpace().nearest_m(0.9e9) == wavelength_m(0.9e9)
    assert free_space_db(wavelength_m(0.9e9), 0.9e9) == pytest.approx(20 * math.log10(4 * math.pi))


def test_a_reference_in_the_near_field_needs_its_loss() -> None:
    message = r"reference_distance_m=0.5 is nearer than a wavelength \(0.666 m\).*; set it farther away, or give"
    with pytest.raises(UserError, match=message):
        LogDistance(exponent=2.0, reference_distance_m=0.5).over_db(100.0, 450e6)
    edge = LogDistance(exponent=2.0, reference_distance_m=wavelength_m(450e6))
    assert edge.over_db(100.0, 450e6) == pytest.approx(free_space_db(100.0, 450e6))
    given = LogDistance(exponent=2.0, reference_distance_m=0.5, reference_loss_db=20.0)
    assert given.over_db(5.0, 450e6) == pytest.approx(40.0)


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
    assert LogDistance(exponent=3.0, reference_distance_m=10.0).over_db(10.0, 0.9e9) == free_space_db(10.0, 0.9e9)
    beyond_db = LogDistance(exponent=3.0, reference_distance_m=10.0).over_db(100.0, 0.9e9) - free_space_db(10.0, 0.9e9)
    assert beyond_db == pytest.approx(30.0, abs=1e-12)


def test_a_given_loss_is_lost_everywhere() -> None:
    given = GivenLoss(loss_db=144.0)
    assert given.losses_db(Ways.of([1.0, 1e5, math.nan], 0.9e9)).tolist() == [144.0] * 3
    assert given.over_db(3.0, 0.9e9) == 144.0 and given.nearest_m(0.9e9) == 0.0
    assert (given.needs_distance, given.has_shadows, given.usual_heights_m) == (False, False, None)


@pytest.mark.parametrize("name", MODELS)
def test_of_many_each_has_the_loss_that_is_its_own(name: str) -> None:
    """To the last bit, and the formula's: 29.72 and 3.5 GHz have no tidy logarithm."""
    distances_m = [1.0, 29.72, 433.1, 1e4]
    losses_db = MODELS[name].losses_db(Ways.of(distances_m, 3.5e9))
    assert losses_db.tolist() == [MODELS[name].model_db(distance_m, 3.5e9) for distance_m in distances_m]
    assert losses_db.tolist() == [MODELS[name].over_db(distance_m, 3.5e9) for distance_m in distances_m]


def test_of_many_the_first_that_is_too_near_is_told() -> None:
    with pytest.raises(OutOfRange, match=r"holds from 1 m on, and the distance is 0.5 m") as refused:
        MODELS["log_distance"].losses_db(Ways.of([3.0, 0.5, 0.1], 1e9))
    assert refused.value.place == 1


class Steps(PathLossSettings):
    """A law of one's own, of the distance alone: a decibel a metre."""

    name: Literal["steps"] = "steps"

    def nearest_m(self, carrier_hz: float) -> float:
        return 2.0

    def model_db(self, distance_m: float, carrier_hz: float) -> float:
        return math.floor(distance_m)


def test_a_law_of_one_s_own_says_two_things_and_works_on_many() -> None:
    ways = Ways.of([2.5, 40.0], 1e9, heights_m=(32.0, 2.0))  # 30.1 and 50 m in space
    assert Steps().losses_db(ways).tolist() == [30.0, 50.0]
    assert Steps(min_distance_m=40.0).losses_db(ways).tolist() == [40.0, 50.0]
    with pytest.raises(UserError, match="steps holds from 2 m on"):
        Steps().over_db(1.9, 1e9)
