"""What a cell is when a scenario says little of it: its discipline, its channels, and what its devices can do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from small_worlds import BASE, EVERYTHING_HAPPENS, prepared, scenario, simulated

from fedsim.errors import UserError
from fedsim.network.settings import CellSettings
from fedsim.radio.fixed import profiles, technologies

PLAIN = {"name": "fixed", "uplink_bps": 1_000.0, "downlink_bps": 2_000.0}
SHANNON = {
    "name": "shannon",
    "profile": "lte_36942",
    "bandwidth_hz": 9e6,
    "snr": {"name": "given", "uplink_db": 5.0, "downlink_db": 9.0},
}
IN_TURN = {"lte_m_m2_hfedms"}
HALF_DUPLEX = {"nb_iot_nb1", "nb_iot_nb2", "lte_m_m1", "lte_m_m2"}


def cell(radio: dict[str, Any], **keys: Any) -> CellSettings:
    return CellSettings.model_validate({"radio": radio, **keys})


# -- the discipline ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", profiles())
def test_base_stations_of_a_technology_share_the_air_out_but_for_the_one_of_a_paper(profile: str) -> None:
    usual = "serial" if profile in IN_TURN else "fair"
    assert cell({"name": "fixed", "profile": profile}).discipline.name == usual


def test_plain_rates_are_had_by_one_after_the_other() -> None:
    assert cell(PLAIN).discipline.name == "serial"
    assert cell(PLAIN | {"uplink_share": 0.25}).discipline.name == "serial"
    assert cell({"name": "fixed", "uplink_bps": math.inf, "downlink_bps": math.inf}).discipline.name == "serial"


def test_rates_from_signal_to_noise_ratios_are_shared_out(tmp_path: Path) -> None:
    assert cell(SHANNON).discipline.name == "fair"
    assert cell(SHANNON | {"profile": "pure"}).discipline.name == "fair"
    for quantity, also, usual in (
        ("bps", {}, "serial"),
        ("snr_db", {"carrier": {"profile": "nr_38803", "bandwidth_hz": 1e6}}, "fair"),
    ):
        (tmp_path / "hall.csv").write_text(f"time_s,uplink_{quantity},downlink_{quantity}\n0,9,9\n", encoding="utf-8")
        assert cell({"name": "trace", "path": str(tmp_path / "hall.csv"), **also}).discipline.name == usual


@pytest.mark.parametrize("name", ["serial", "dedicated", "fair"])
def test_a_discipline_that_is_written_holds_whatever_is_usual(name: str) -> None:
    for radio in (PLAIN, SHANNON, {"name": "fixed", "profile": "lte_cat4"}):
        assert cell(radio, discipline={"name": name}).discipline.name == name


def test_each_cell_has_the_discipline_of_its_own_radio() -> None:
    profile = {"radio": {"name": "fixed", "profile": "lte_m_m1"}}
    found = scenario({"network.cell": {"radio": PLAIN}, "network.cells": {"station": profile}}).network
    assert (found.cell.discipline.name, found.cells["station"].discipline.name) == ("serial", "fair")


def test_wires_are_served_in_turn_whatever_the_air_is() -> None:
    found = scenario({"network.cell": {"radio": {"name": "fixed", "profile": "lte_cat4"}}}).network
    assert found.link is not None and found.link.discipline.name == "serial"


# -- what devices can do -----------------------------------------------------------------------------------------------


def of_each_device(changes: dict[str, Any]) -> list[bool]:
    """Whether each sensor's device is half-duplex, up and down having it in common."""
    attachments = [client.attachment for client in prepared(changes)[0].clients]
    assert all(one.air_uplink.half_duplex is one.air_downlink.half_duplex for one in attachments)
    own = {id(one.air_uplink.half_duplex) for one in attachments if one.air_uplink.half_duplex is not None}
    found = [one.air_uplink.half_duplex is not None for one in attachments]
    assert len(own) == sum(found), "each has its own"
    return found


@pytest.mark.parametrize("profile", profiles())
def test_a_class_that_says_nothing_is_as_the_technology_has_it(profile: str) -> None:
    air = {"network.cell": {"radio": {"name": "fixed", "profile": profile}}}
    assert of_each_device(air) == [profile in HALF_DUPLEX] * 2
    for duplex in ("full", "half"):
        written = air | {"devices.classes.sensor.duplex": duplex}
        if duplex == "half" and technologies()[profile].duplex == "tdd":
            with pytest.raises(UserError, match=r"half-duplex class 'sensor', and the radio's rates contain already"):
                of_each_device(written)
        else:
            assert of_each_device(written) == [duplex == "half"] * 2


def test_with_plain_rates_and_ratios_devices_do_both_at_once_unless_their_class_says_so() -> None:
    assert of_each_device({}) == [False, False]
    assert of_each_device({"network.cell": {"radio": SHANNON}}) == [False, False]
    assert of_each_device({"devices.classes.sensor.duplex": "half"}) == [True, True]


def test_a_shared_cell_says_nothing_of_its_devices() -> None:
    assert of_each_device({"network.cell.duplex": "shared"}) == [False, False]


NAMED: dict[str, Any] = {
    "topology": {
        "name": "explicit",
        "nodes": {
            "cloud": {"kind": "cloud"},
            "bs": {"kind": "base_station"},
            "one": {"kind": "sensor", "attach": "bs"},
            "other": {"kind": "sensor", "attach": "bs", "device": "camera"},
        },
        "links": [{"between": ["cloud", "bs"]}],
    },
    "devices.classes.camera": BASE["devices"]["classes"]["sensor"],
}


def test_each_device_is_as_its_own_class_has_it_named_or_by_default() -> None:
    for default, found in (("sensor", [True, False]), ("camera", [False, False])):
        changes = NAMED | {"devices.default": default, "devices.classes.sensor.duplex": "half"}
        assert of_each_device(changes) == found


def test_the_default_class_has_its_weight_where_devices_name_none() -> None:
    weights = {"name": "fair", "weights": {"sensor": 3.0, "camera": 5.0}}
    world, _ = prepared(NAMED | {"devices.default": "sensor", "network.cell.discipline": weights})
    assert [[hop.weight for hop in client.attachment.air] for client in world.clients] == [[3.0] * 2, [5.0] * 2]


# -- shared, and what it was called before -----------------------------------------------------------------------------


def test_the_old_word_means_what_it_meant() -> None:
    assert cell(PLAIN, duplex="half") == cell(PLAIN, duplex="shared") != cell(PLAIN)
    old, new, other = (
        simulated(EVERYTHING_HAPPENS | {"network.cell.duplex": word}).trace.digest()
        for word in ("half", "shared", "full")
    )
    assert old == new != other


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"duplex": "hlaf"}, "Input should be 'full' or 'shared'"),
        ({"duplex": None}, "Input should be 'full' or 'shared'"),
        ({"duplex": ["half"]}, "Input should be 'full' or 'shared'"),
        ({"carriers": 0}, "greater than or equal to 1"),
        ({"carriers": 2.0}, "valid integer"),
        ({"carriers": 2, "discipline": {"name": "dedicated"}}, "2 make no difference where nobody waits for anybody"),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        cell(PLAIN, **keys)


@pytest.mark.parametrize("word", ["shared", "half"])
def test_time_that_the_rates_divide_already_is_not_divided_again(word: str) -> None:
    with pytest.raises(ValidationError, match="the radio's rates contain that already"):
        cell({"name": "fixed", "profile": "nr_100mhz_private"}, duplex=word)
    for profile in set(profiles()) - {"nr_100mhz_private"}:
        assert cell({"name": "fixed", "profile": profile}, duplex=word).duplex == "shared"


def test_carriers_are_for_those_who_wait() -> None:
    for name in ("serial", "fair"):
        assert cell(PLAIN, carriers=3, discipline={"name": name}).carriers == 3
    assert cell(PLAIN, carriers=1, discipline={"name": "dedicated"}).carriers == 1


def test_an_upload_waits_for_its_grant_and_a_download_for_its_assignment() -> None:
    """The delays that the radio tells are those between the last bit of a lone message and its arrival."""
    radio = {"name": "nr", "bandwidth_mhz": 20.0, "snr": {"name": "given", "uplink_db": 30.0, "downlink_db": 30.0}}
    world = simulated({"network.cell": {"radio": radio, "delay_s": 0.5}, "topology.devices": 1})
    delays_s = world.wires.cells["station"].settings.radio.access_delays_s
    hops = world.trace.hops.array()
    air = hops[hops["access"]]
    for up, delay_s in ((True, delays_s.uplink), (False, delays_s.downlink)):
        [message] = air[air["uplink"] == up]
        after_the_last_bit_s = message["end_s"] - message["start_s"] - message["queued_s"] - message["airtime_s"]
        assert 0 < delay_s < 0.1
        assert after_the_last_bit_s == pytest.approx(0.5 + delay_s)


def test_one_channel_for_both_directions_has_the_longer_delay() -> None:
    radio = {"name": "nr", "bandwidth_mhz": 20.0, "snr": {"name": "given", "uplink_db": 30.0, "downlink_db": 30.0}}
    world, _ = prepared({"network.cell": {"radio": radio, "duplex": "shared"}})
    cell = world.wires.cells["station"]
    assert [channel.delay_s for channel in cell.link.channels] == [max(cell.settings.radio.access_delays_s)]
