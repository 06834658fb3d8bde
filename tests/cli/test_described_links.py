"""``fedsim describe`` on links over the air: the terms of one device add up, and counts are those of all of them."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scenario_texts import write_scenario
from small_worlds import NO_CONTENTION, scenario

from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.experiment.describe import describe
from fedsim.experiment.description import air
from fedsim.experiment.description.link import describe_links
from fedsim.viz.describe_network import link_tables
from fedsim.viz.describe_tables import description_tables

Capture = pytest.CaptureFixture[str]

SNR: dict[str, Any] = {
    "name": "link_budget",
    "carrier_hz": 0.9e9,
    "device_power_dbm": 23.0,
    "station_power_dbm": 43.0,
    "device_noise_figure_db": 5.0,
    "station_noise_figure_db": 3.0,
    "path_loss": {"name": "log_distance", "exponent": 4.0},
    "shadowing": {"sigma_db": 8.0},
}
NB_IOT: dict[str, Any] = {"name": "nb_iot", "out_of_coverage": "exclude", "snr": SNR}
SHANNON: dict[str, Any] = {"name": "shannon", "profile": "nr_38803", "bandwidth_hz": 1e6, "snr": SNR}
GIVEN: dict[str, Any] = {**SHANNON, "snr": {"name": "given", "uplink_db": 10.0, "downlink_db": 20.0}}
FAR = {"topology": {"name": "star", "devices": 40, "radius_m": 900.0}, "network.cell.radio": NB_IOT}


def link(changes: dict[str, Any], device: str = "sensor-1") -> dict[str, Any]:
    """The facts about one device's link."""
    return describe_links(scenario(changes), [device])[0]


def shown(facts: dict[str, Any]) -> dict[str, list[str]]:
    """Its tables: the title of each row, and the rest of the row."""
    return {row[0]: row[1:] for table in link_tables(facts) for row in table.cells.to_numpy().tolist()}


# -- one device -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radio", [SHANNON, NB_IOT], ids=["shannon", "nb_iot"])
def test_the_terms_of_a_device_are_those_of_a_network_of_one(radio: dict[str, Any]) -> None:
    changes = {"topology.devices": 1, "network.cell.radio": radio}
    network = describe(scenario(changes))[0]["network"]
    terms = {term["term"]: term for term in link(changes)["terms"]}
    rate = terms.pop("rate")
    assert rate["uplink"] == network["uplink_bps"]["min"] and rate["downlink"] == network["downlink_bps"]["min"]
    assert list(terms) == [term["term"] for term in network["link_budget"]]
    for term in network["link_budget"]:
        for way in ("uplink", "downlink"):
            assert terms[term["term"]][way] == term[way]["median"], (term, way)


@pytest.mark.parametrize("radio", [SHANNON, NB_IOT, {**NB_IOT, "harq_processes": 2, "category": "nb2"}])
@pytest.mark.parametrize("parameters", [10, 1000])
def test_a_model_takes_what_it_takes_in_a_round_of_one_device(radio: dict[str, Any], parameters: int) -> None:
    """With headers, the cell's delay, and whole blocks where a message is short."""
    changes: dict[str, Any] = {
        **NO_CONTENTION,
        "topology.devices": 1,
        "network.cell.radio": radio,
        "network.cell.delay_s": 0.25,
        "network.transport": {"payload_bytes": 300, "header_bytes": 40},
        "model.parameters": parameters,
    }
    parts, model = describe(scenario(changes))[0]["protocols"][0]["parts"], link(changes)["model"]
    assert (model["name"], model["bytes"]) == ("declared", 4 * parameters)
    assert model["downlink_s"] == pytest.approx(parts["download_s"]["median"], rel=1e-12)
    assert model["uplink_s"] == pytest.approx(parts["upload_s"]["median"], rel=1e-12)


def test_drawn_block_errors_are_counted_with_their_mean() -> None:
    seconds = {}
    for errors in ("none", "drawn"):
        radio = {**NB_IOT, "block_errors": errors}
        seconds[errors] = link({"topology.devices": 1, "network.cell.radio": radio})["model"]["uplink_s"]
    assert seconds["drawn"] == pytest.approx(seconds["none"] / 0.9)


def test_who_has_no_coverage_is_told_why_though_a_run_refuses_the_scenario() -> None:
    deaf = copy.deepcopy(NB_IOT) | {"out_of_coverage": "refuse"}
    deaf["snr"]["device_power_dbm"] = -90.0
    changes = {"topology.devices": 2, "network.cell.radio": deaf}
    with pytest.raises(UserError, match="has no coverage in the uplink"):
        describe(scenario(changes))
    facts = link(changes)
    assert "has no coverage in the uplink: its SNR is " in facts["no_coverage"]
    terms = {term["term"]: term for term in facts["terms"]}
    assert terms["needed SNR"]["uplink"] is None and terms["rate"]["uplink"] == 0.0
    rows = shown(facts)
    assert rows["1 kB of declared, alone"][0] == "never" and rows["needed SNR"][0] == ""
    assert rows["no coverage"] != [""]


def test_where_it_stands_is_told() -> None:
    snr = {**SNR, "station_height_m": 30.0, "device_height_m": 1.5}
    kind = {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}}
    both = ["sensor", "meter"]
    place = {"height_m": 0.25, "indoor_m": 12.0, "extra_loss_db": 7.0}
    changes = {
        "network.cell.radio": {**SHANNON, "snr": snr},
        "topology": {"name": "factory_park", "factories": 1, "devices_per_factory": 2, "device_classes": both},
        "devices.classes.meter": {**kind, "place": place},
    }
    one, other = describe_links(scenario(changes), ["factory-1/sensor-1", "factory-1/sensor-2"])
    assert shown(one)["heights of antennas"] == ["base station 30 m, device 1.5 m"]
    assert "indoors" not in shown(one)
    rows = shown(other)
    assert rows["heights of antennas"] == ["base station 30 m, device 0.25 m"]
    assert rows["indoors"] == ["12 m behind the outer wall"] and rows["extra loss of its place"] == ["7 dB"]
    extra_db = [next(term["uplink"] for term in of["terms"] if term["term"] == "extra loss") for of in (one, other)]
    assert extra_db == [0.0, 7.0]


def test_rates_without_a_budget_say_where_they_are_from(tmp_path: Path) -> None:
    file = tmp_path / "hall.csv"
    file.write_text("time_s,uplink_bps,downlink_bps\n0,500,2000000\n", encoding="utf-8")
    origins = {
        "plain numbers of the scenario": {"name": "fixed", "uplink_bps": 500.0, "downlink_bps": 2e6},
        "nominal rates of lte_m_m1": {"name": "fixed", "profile": "lte_m_m1"},
        f"{file}, at time zero": {"name": "trace", "path": str(file)},
    }
    for origin, radio in origins.items():
        facts = link({"network.cell.radio": radio})
        assert facts["rates_from"] == origin
        assert [term["term"] for term in facts["terms"]] == ["share of the carrier", "rate"]
        if "lte_m_m1" not in origin:
            assert shown(facts)["rate"] == ["0.0005", "2", "Mbit/s"]
    unlimited = {"name": "fixed", "uplink_bps": float("inf"), "downlink_bps": 2e6}
    assert shown(link({"network.cell.radio": unlimited}))["rate"] == ["unlimited", "2", "Mbit/s"]


# -- all devices ------------------------------------------------------------------------------------------------------


def test_classes_and_rows_are_counted_over_all_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    network = describe(scenario(FAR))[0]["network"]
    names = [f"sensor-{number:02}" for number in range(1, 41)]
    links = describe_links(scenario(FAR), names)
    classes = Counter(one["coverage_class"] for one in links)
    assert len(classes) > 1
    assert network["coverage_classes"] == [{"class": one, "devices": classes[one]} for one in sorted(classes)]
    for way in ("uplink", "downlink"):
        rows = Counter(one[f"{way}_row"] for one in links if one[f"{way}_row"])
        taken = network["table_rows"][way]
        assert (taken["different"], taken["devices"]) == (len(rows), rows.total())
        assert [one["devices"] for one in taken["most_common"]] == [count for _, count in rows.most_common(5)]
        assert all(rows[one["row"]] == one["devices"] for one in taken["most_common"])
    monkeypatch.setattr(air, "MANY", 7)
    assert describe(scenario(FAR))[0]["network"] == network


def test_tables_tell_classes_and_rows_and_how_many_others_there_are() -> None:
    facts = describe(scenario(FAR))[0]
    tables = {table.cells.columns[0]: table.cells for table in description_tables(facts)}
    classes = {one["class"]: one["devices"] for one in facts["network"]["coverage_classes"]}
    listed = dict(tables["network"].to_numpy().tolist())
    assert listed["coverage class 0"] == f"{classes[0]} sensors"
    uplinks = tables["direction"][tables["direction"]["direction"] == "uplink"]
    taken = facts["network"]["table_rows"]["uplink"]
    assert uplinks["sensors"].astype(int).sum() == taken["devices"]
    assert uplinks["most common rows"].tolist()[-1] == f"{taken['different'] - 5} other rows"


def test_radios_of_different_terms_are_one_table_in_the_order_of_each() -> None:
    """A budget behind given ratios: its terms come before those that both have."""
    topology = {"name": "factory_park", "factories": 1, "devices_per_factory": 6, "stations_per_factory": 3}
    cells = {"factory-1/station-2": {"radio": SHANNON}, "factory-1/station-3": {"radio": NB_IOT}}
    changes = {"topology": topology, "network.cell.radio": GIVEN, "network.cells": cells}
    terms = [term["term"] for term in describe(scenario(changes))[0]["network"]["link_budget"]]
    for one in range(1, 7):
        own = [term["term"] for term in link(changes, f"factory-1/sensor-{one}")["terms"] if term["term"] != "rate"]
        assert own == [term for term in terms if term in own]
    assert {"transmit power", "spectral efficiency", "needed SNR"} <= set(terms)


def test_a_radio_without_ratios_has_neither() -> None:
    network = describe(scenario({}))[0]["network"]
    assert (network["link_budget"], network["coverage_classes"], network["table_rows"]) == ([], [], {})


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_each_link_that_is_asked_for(tmp_path: Path, capsys: Capture) -> None:
    words = ["describe", str(write_scenario(tmp_path)), "--set", "seeds=[7, 8]"]
    assert main([*words, "--link", "sensor-2", "--link", "sensor-3", "--link", "sensor-2"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    first, second, third, _ = printed.out.split("\n\n")
    assert first.splitlines() == [
        "| sensor-2                  | uplink | downlink | unit   |",
        "| ------------------------- | -----: | -------: | ------ |",
        "| share of the carrier      |      1 |        1 |        |",
        "| rate                      |      1 |        1 | Mbit/s |",
        "| 2.60 kB of softmax, alone |   20.8 |     20.8 | ms     |",
    ]
    assert "| station: radio fixed, 1 carrier each way, serial " in second
    assert "of class sensor, at time zero of seed 7" in second
    assert third.startswith("| sensor-3 ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--link", "sensor-22"], "--link: no device is called 'sensor-22'; did you mean 'sensor-2'?"),
        (["--link", "robot"], "--link: no device is called 'robot', only 'sensor-1', 'sensor-2', 'sensor-3'"),
        (["--link", "station"], "--link: no device is called 'station', only"),
        (["--link", "sensor-1", "--out", "x"], "--link prints links and writes no files; leave --out or --link out"),
        (
            ["--link", "sensor-1", "--set", "network.cells={statoin: {radio: {name: fixed, profile: lte_m_m1}}}"],
            "describes 'statoin', which is no base station with sensors; did you mean 'station'?",
        ),
    ],
)
def test_wrong_words_are_one_message_and_status_2(
    tmp_path: Path, capsys: Capture, words: list[str], message: str
) -> None:
    assert main(["describe", str(write_scenario(tmp_path)), *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err and len(printed.err.splitlines()) == 1


def test_the_nearest_name_is_found_in_a_large_network_too() -> None:
    park = {"name": "factory_park", "factories": 40, "devices_per_factory": 40}
    with pytest.raises(UserError, match="did you mean 'factory-31/sensor-17'"):
        link({"topology": park}, "factory-31/sensor-017")
