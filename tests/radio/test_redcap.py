"""RedCap: 20 MHz, one or two antennas, half duplex, and the 10 Mbit/s of Release 18."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from technologies import DDDSU, at, best, nr, redcap


@pytest.mark.parametrize(
    ("keys", "down_mbps", "up_mbps"),
    [
        ({}, 85.07, 91.00),
        ({"antennas": 2}, 170.14, 91.00),
        ({"antennas": 2, "downlink_mcs_table": 2, "uplink_mcs_table": 2}, 226.85, 121.34),
        ({"subcarrier_khz": 30}, 81.86, 87.57),
        ({"bandwidth_mhz": 5.0}, 20.06, 21.46),
        ({"subcarrier_khz": 30, "tdd": DDDSU}, 81.86 * 26 / 35, 87.57 / 5),
        ({"release": 18}, 10.0, 10.0),
        ({"release": 18, "subcarrier_khz": 30, "tdd": DDDSU}, 10.0, 5.5547 * 12 * 12 * 28e-3 * 0.92 / 5),
    ],
)
def test_the_best_rates(keys: dict[str, Any], down_mbps: float, up_mbps: float) -> None:
    rates = best(redcap(**keys))
    assert (rates.downlink_bps / 1e6, rates.uplink_bps / 1e6) == pytest.approx((down_mbps, up_mbps), rel=1e-3)


def test_it_is_new_radio_with_less() -> None:
    """The same carrier, tables and layers: the very same rates."""
    keys: dict[str, Any] = {"bandwidth_mhz": 20.0, "subcarrier_khz": 15, "downlink_mcs_table": 1}
    for ratio_db in (-20.0, -3.0, 9.0, 30.0):
        assert at(redcap(), ratio_db) == at(nr(**keys, downlink_layers=1), ratio_db)
        assert at(redcap(antennas=2), ratio_db) == at(nr(**keys, downlink_layers=2), ratio_db)


def test_a_device_of_release_18_uses_a_part_of_the_carrier_in_frequency_and_time() -> None:
    """25 of 106 resource blocks carry 20.06 Mbit/s down, and it takes less than half of these at 10."""
    full, reduced = best(redcap(bandwidth_mhz=5.0)), best(redcap(release=18))
    part = 10e6 / full.downlink_bps
    assert reduced.downlink_share == pytest.approx(part * 25 / 106)
    assert reduced.downlink_format.duty == pytest.approx(part)
    assert redcap(release=18).least_snr_db.downlink == redcap().least_snr_db.downlink  # power is over the carrier
    weak = at(redcap(release=18), 60.0, 3.0)
    assert weak.downlink_bps < 10e6 and weak.downlink_share == pytest.approx(25 / 106)
    assert redcap(release=18).bandwidths_hz == redcap().bandwidths_hz == (19.08e6, 19.08e6)


def test_devices_may_be_half_duplex() -> None:
    assert redcap().device_duplex == "full" and redcap(duplex="half").device_duplex == "half"
    assert redcap(tdd=DDDSU).divides_time and not redcap(duplex="half").divides_time


def test_what_a_message_waits_for() -> None:
    assert redcap().access_delays_s == pytest.approx((17e-3, 1e-3))
    assert redcap(subcarrier_khz=30).access_delays_s == pytest.approx((8.5e-3, 0.5e-3))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"bandwidth_mhz": 40.0}, r"bandwidth_mhz=40 is more than RedCap devices have \(20\); .* cell carriers"),
        ({"bandwidth_mhz": 12.0}, "with subcarriers of 15 kHz; the nearest are 10 and 15"),
        ({"subcarrier_khz": 60}, "15 or 30"),
        ({"antennas": 3}, "1 or 2"),
        ({"duplex": "half", "tdd": DDDSU}, "duplex=half is for a frequency for each direction, .* leave one of them"),
        ({"release": 16}, "17 or 18"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        redcap(**keys)
