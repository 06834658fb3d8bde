"""From power to signal-to-noise ratio: published link budgets, and a decibel here is a decibel there."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from radio_sites import BUDGET, GIVEN, shannon, site

from fedsim.errors import Misfit
from fedsim.radio.budget import NOISE_DBM_PER_HZ, noise_dbm
from fedsim.radio.settings import Place, UpDown
from fedsim.radio.snr import FromLinkBudget, Given

BOTH_1_MHZ = UpDown(1e6, 1e6)
MORE = {"device_antenna_gain_db": 2.0, "station_antenna_gain_db": 3.0, "extra_loss_db": 6.1}
PLACES = (Place(), Place(height_m=7.7), Place(indoor_m=3.3), Place(extra_loss_db=9.9, indoor_m=0.0, height_m=1.9))


def budget(**keys: Any) -> FromLinkBudget:
    return FromLinkBudget(**{**BUDGET, **keys})


def coupling_loss(loss_db: float) -> dict[str, Any]:
    """A path on which so much is lost over 100 m."""
    return {"name": "log_distance", "exponent": 2.0, "reference_distance_m": 100.0, "reference_loss_db": loss_db}


def test_noise_is_k_t_b_as_3gpp_rounds_it() -> None:
    k_t_dbm_per_hz = 10 * math.log10(1.380649e-23 * 290 * 1e3)
    assert k_t_dbm_per_hz == pytest.approx(-173.975, abs=0.0005)
    assert round(k_t_dbm_per_hz) == NOISE_DBM_PER_HZ


@pytest.mark.parametrize(
    ("bandwidth_hz", "figure_db", "floor_dbm"),
    [(180e3, 5, -116.4), (180e3, 3, -118.4), (15e3, 3, -129.2), (20e6, 9, -92.0)],
)
def test_noise_floors(bandwidth_hz: float, figure_db: float, floor_dbm: float) -> None:
    """-174 dBm/Hz, the bandwidth and the noise figure: TR 45.820 annex C and TR 36.888 have the first three."""
    assert noise_dbm(bandwidth_hz) + figure_db == pytest.approx(floor_dbm, abs=0.05)


NB_IOT = {  # at a coupling loss of 164 dB: bandwidth, power up and down, SNR as published, tolerance as printed
    "npdsch, 43 dBm": ("downlink", 180e3, {"station_power_dbm": 43.0, "device_noise_figure_db": 5.0}, -4.6, 0.05),
    "npdsch, 35 dBm": ("downlink", 180e3, {"station_power_dbm": 35.0, "device_noise_figure_db": 5.0}, -12.6, 0.05),
    "npusch, 1 tone": ("uplink", 15e3, {"device_power_dbm": 23.0, "station_noise_figure_db": 3.0}, -11.761, 0.0005),
    "npusch, 12 tones": ("uplink", 180e3, {"device_power_dbm": 23.0, "station_noise_figure_db": 3.0}, -22.553, 0.0005),
}


@pytest.mark.parametrize("channel", NB_IOT)
def test_nb_iot_at_its_maximum_coupling_loss(channel: str) -> None:
    """TR 45.820's targets, and the required SNR of ns-3's LENA-NB, which gives the uplink to three digits."""
    direction, bandwidth_hz, keys, snr_db, tolerance_db = NB_IOT[channel]
    median_db = budget(path_loss=coupling_loss(164.0), **keys).median_db(site(), UpDown(bandwidth_hz, bandwidth_hz))
    assert getattr(median_db, direction) == pytest.approx(snr_db, abs=tolerance_db)


def test_a_budget_worked_by_hand() -> None:
    """900 MHz, 100 m, exponent 3: 31.53 + 60 dB lost; 1 MHz of noise are -114 dBm."""
    uplink, downlink = budget().median_db(site(100.0), BOTH_1_MHZ)
    assert uplink == pytest.approx(23 - 91.53 + 114 - 3, abs=0.01)
    assert downlink == pytest.approx(43 - 91.53 + 114 - 5, abs=0.01)


@pytest.mark.parametrize(
    ("key", "uplink_db", "downlink_db"),
    [
        ("device_power_dbm", 1, 0),
        ("station_power_dbm", 0, 1),
        ("device_noise_figure_db", 0, -1),
        ("station_noise_figure_db", -1, 0),
        ("device_antenna_gain_db", 1, 1),
        ("station_antenna_gain_db", 1, 1),
        ("extra_loss_db", -1, -1),
        ("uplink_interference_margin_db", -1, 0),
        ("downlink_interference_margin_db", 0, -1),
    ],
)
def test_a_decibel_more_moves_the_ratio_by_one_where_it_acts(key: str, uplink_db: int, downlink_db: int) -> None:
    changed = budget(**{key: BUDGET.get(key, 0.0) + 1.0})
    before, after = budget().median_db(site(), BOTH_1_MHZ), changed.median_db(site(), BOTH_1_MHZ)
    assert after.uplink - before.uplink == pytest.approx(uplink_db)
    assert after.downlink - before.downlink == pytest.approx(downlink_db)


def test_twice_the_bandwidth_is_3_db_more_noise() -> None:
    narrow, wide = budget().median_db(site(), BOTH_1_MHZ), budget().median_db(site(), UpDown(2e6, 1e6))
    assert narrow.uplink - wide.uplink == pytest.approx(10 * math.log10(2))
    assert narrow.downlink == wide.downlink


def test_heights_make_it_a_distance_in_space() -> None:
    high = budget(station_height_m=32.5, device_height_m=2.5)
    assert high.median_db(site(40.0), BOTH_1_MHZ) == budget().median_db(site(50.0), BOTH_1_MHZ)  # 30, 40, 50


def test_below_a_mast_the_height_is_the_distance() -> None:
    high = budget(station_height_m=11.5, device_height_m=1.5)
    assert high.median_db(site(0.0), BOTH_1_MHZ) == budget().median_db(site(10.0), BOTH_1_MHZ)


def test_the_terms_add_up_to_the_ratio_and_the_ratio_makes_the_rate() -> None:
    more = {"device_antenna_gain_db": 2.0, "extra_loss_db": 6.0, "uplink_interference_margin_db": 3.0}
    radio = shannon({**BUDGET, **more, "shadowing": {"sigma_db": 4.0, "redraw_every_s": 1.0}})
    uplink, downlink = radio.budgets(site())
    assert list(radio.rates_of([site(1e3)], 1.0)) == [next(radio.changes(site(1e3)))[1]] != [radio.rates(site(1e3))]
    for budget, rate_bps in ((uplink, radio.rates(site()).uplink_bps), (downlink, radio.rates(site()).downlink_bps)):
        value = {name: number for name, number, _ in budget.rows()}
        gains = value["transmit power"] + value["antenna gains"]
        losses = value["path loss"] + value["extra loss"] + value["shadowing"]
        noise = value["thermal noise"] + value["noise figure"] + value["interference margin"]
        assert value["SNR"] == pytest.approx(gains - losses - noise)
        assert value["rate"] == value["bandwidth"] * value["spectral efficiency"] == rate_bps
    assert uplink.shadowing_db == downlink.shadowing_db != 0


def test_the_budget_of_a_given_ratio_begins_with_it() -> None:
    uplink, downlink = shannon(GIVEN).budgets(site(None))
    assert (uplink.power, downlink.power) == (None, None)
    assert [name for name, _, _ in uplink.rows()] == ["shadowing", "SNR", "bandwidth", "spectral efficiency", "rate"]
    assert (uplink.snr_db, downlink.snr_db) == (10.0, 20.0)


def test_the_same_path_both_ways() -> None:
    uplink, downlink = budget().power(site(), BOTH_1_MHZ)
    assert uplink.path_loss_db == downlink.path_loss_db


def test_a_sensor_without_a_distance_is_named() -> None:
    message = "the distance of sensor 'cam-7' to its base station is unknown, .* give both a position_m in the topology"
    with pytest.raises(Misfit, match=message) as refused:
        shannon().rates(site(None, sensor="cam-7"))
    assert refused.value.key == ("snr",)


def test_a_sensor_too_near_for_the_model_is_named() -> None:
    message = "sensor 'cam-7': log_distance holds from 1 m on, and the distance is 0.5 m; move one of the two"
    with pytest.raises(Misfit, match=message) as refused:
        shannon().rates(site(0.5, sensor="cam-7"))
    assert refused.value.key == ("snr", "path_loss")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"station_height_m": 10.0}, "only one of station_height_m and device_height_m is given; give both, or none"),
        ({"device_height_m": 1.0}, "only one of station_height_m and device_height_m is given; give both, or none"),
        ({"device_power_dbm": 301.0}, "less than or equal to 300"),
        ({"station_noise_figure_db": -1.0}, "greater than or equal to 0"),
        ({"carrier_hz": 0.0}, "greater than 0"),
        ({"path_loss": {"name": "okumura"}}, "'given', 'free_space', 'log_distance'"),
        ({"noise_figure_db": 5.0}, "Extra inputs are not permitted"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        budget(**keys)


def test_of_many_each_has_the_ratio_and_the_terms_that_are_its_own() -> None:
    """To the last bit, with everything that a place may have."""
    source = budget(**MORE, station_height_m=25.0, device_height_m=1.5, path_loss={"name": "uma"}, carrier_hz=3.5e9)
    paths = [replace(site(100.0 + index, index=index), place=PLACES[index % 4]) for index in range(40)]
    uplinks_db, downlinks_db = source.medians_db(paths, UpDown(1e6, 2e6))
    alone = [source.power(path, UpDown(1e6, 2e6)) for path in paths]
    assert [up.snr_db for up, _ in alone] == uplinks_db.tolist()
    assert [down.snr_db for _, down in alone] == downlinks_db.tolist()
    assert alone == list(source.powers(paths, UpDown(1e6, 2e6)))
    assert source.median_db(paths[7], UpDown(1e6, 2e6)) == (uplinks_db[7], downlinks_db[7])
    losses_db = [up.path_loss_db + up.extra_loss_db + up.penetration_loss_db - 5.0 for up, _ in alone]
    coupling_db = source.coupling_losses_db(paths)
    assert coupling_db.tolist() == pytest.approx(losses_db, abs=1e-9)


def test_given_ratios_have_no_coupling_loss() -> None:
    source = Given(uplink_db=1.0, downlink_db=2.0)
    assert source.coupling_losses_db([site()]) is None
    assert [side.tolist() for side in source.medians_db([site(), site()], BOTH_1_MHZ)] == [[1.0, 1.0], [2.0, 2.0]]


def test_what_a_place_takes_away_in_addition_is_extra_loss() -> None:
    pit = replace(site(), place=Place(extra_loss_db=9.0))
    both = budget(extra_loss_db=2.0).power(pit, BOTH_1_MHZ)
    assert both.uplink.extra_loss_db == both.downlink.extra_loss_db == 11.0


def test_a_given_loss_needs_no_place() -> None:
    """NB-IoT's 144 dB: 23 dBm less 144 dB, and -114 + 3 dBm of noise."""
    source = budget(path_loss={"name": "given", "loss_db": 144.0})
    assert source.median_db(site(None), BOTH_1_MHZ).uplink == pytest.approx(23 - 144 + 114 - 3, abs=1e-9)


def test_a_device_may_be_as_high_as_its_place_says() -> None:
    source = budget(station_height_m=32.0, device_height_m=2.0)
    above = replace(site(40.0), place=Place(height_m=32.0))
    assert source.median_db(above, BOTH_1_MHZ) == budget().median_db(site(40.0), BOTH_1_MHZ)
    unknown = replace(site(40.0), place=Place(height_m=30.0))  # and nobody says how high the station is
    assert budget().median_db(unknown, BOTH_1_MHZ) == budget().median_db(site(40.0), BOTH_1_MHZ)


def test_either_height_alone_is_enough_where_the_standard_has_the_other() -> None:
    keys = {"path_loss": {"name": "uma", "in_view": "never"}, "carrier_hz": 3.5e9}
    usual = budget(**keys).median_db(site(), BOTH_1_MHZ)
    assert budget(**keys, station_height_m=25.0).median_db(site(), BOTH_1_MHZ) == usual
    assert budget(**keys, device_height_m=1.5).median_db(site(), BOTH_1_MHZ) == usual
