"""A network's picture colours devices by their uplinks: brighter is better, and who has no coverage is a cross."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from drawn_networks import caption, entries, many, network, picture, plant, scattered
from matplotlib.collections import PatchCollection
from small_worlds import scenario

from fedsim.errors import UserError
from fedsim.experiment.device_hues import device_hues
from fedsim.kernel.streams import Streams
from fedsim.network.radio_paths import paths_of
from fedsim.viz.topology_map.hues import UNCOVERED, UNKNOWN, Hues, Quantity

NAN = float("nan")
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
RADIOS: dict[str, dict[str, Any]] = {
    "fixed": {"name": "fixed", "uplink_bps": 1e3, "downlink_bps": 2e3},
    "unlimited": {"name": "fixed", "uplink_bps": float("inf"), "downlink_bps": 2e3},
    "shannon": {"name": "shannon", "profile": "nr_38803", "bandwidth_hz": 1e6, "snr": SNR},
    "nb_iot": {"name": "nb_iot", "out_of_coverage": "exclude", "snr": SNR},
}


def hues(quantity: Quantity, values: list[float], covered: list[bool] | None = None) -> Hues:
    names = [f"s{number}" for number in range(len(values))]
    seen = np.array([True] * len(values) if covered is None else covered)
    return Hues(quantity, 1, names, np.array(values), seen)


def lightness(colour: tuple[float, ...]) -> float:
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


@pytest.mark.parametrize(
    ("quantity", "worst_to_best"),
    [("snr", [-30.0, -10.0, 0.0, 25.0]), ("rate", [50.0, 5e2, 5e3, 1e6]), ("class", [2.0, 1.0, 0.0])],
)
def test_better_is_brighter_and_rates_go_by_their_logarithm(quantity: Quantity, worst_to_best: list[float]) -> None:
    found = hues(quantity, worst_to_best)
    steps = list(found.steps.values())
    assert (steps[0], steps[-1]) == (0, 255)
    brightness = [lightness(found.colour(step)) for step in steps]
    assert brightness == sorted(brightness) and len(set(brightness)) == len(steps)
    if quantity == "rate":
        shares = np.log10(np.array(worst_to_best) / 50.0) / np.log10(1e6 / 50.0)
        assert np.abs(np.array(steps) / 255 - shares).max() < 0.01


def test_one_value_an_unlimited_rate_and_unknown_ones_have_colours_too() -> None:
    assert list(hues("snr", [7.0, 7.0]).steps.values()) == [128, 128]
    assert list(hues("rate", [1e3, float("inf"), 1e6]).steps.values()) == [0, 255, 255]
    assert list(hues("snr", [NAN, 1.0, 2.0], [True, False, True]).steps.values()) == [UNKNOWN, UNCOVERED, 128]


def test_each_device_has_its_colour_and_who_has_no_coverage_is_a_cross() -> None:
    found = Hues("snr", 1, ["c", "a", "b"], np.array([4.0, -90.0, 9.0]), np.array([True, False, True]))
    figure = picture(plant(), hues=found)
    drawn = scattered(figure)
    assert len(drawn["lost"][0].get_offsets()) == 1
    seen = {tuple(map(float, colour)) for colour in drawn["sensor"][0].get_facecolor()}
    assert seen == {found.colour(0), found.colour(255)}
    assert "1 out of coverage" in entries(figure)
    assert figure.axes[1].get_ylabel() == "SNR of the uplink, dB"


@pytest.mark.parametrize("name", ["plant in place", "park", "ring without positions", "star"])
@pytest.mark.parametrize("quantity", ["snr", "rate", "class"])
def test_the_colour_bar_and_the_legend_cover_nothing(name: str, quantity: Quantity) -> None:
    topology = many()[name]
    values = (
        np.geomspace(1.0, 1e6, len(topology.sensors)) if quantity == "rate" else np.arange(len(topology.sensors)) % 3
    )
    covered = np.arange(len(topology.sensors)) % 5 != 1
    figure = picture(topology, hues=Hues(quantity, 1, topology.sensors, values.astype(np.float64), covered))
    assert len(figure.axes) == (1 if quantity == "class" else 2)
    boxes = [ax.get_tightbbox() for ax in figure.axes] + [legend.get_window_extent() for legend in figure.legends]
    for number, box in enumerate(boxes):
        assert box is not None and figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and figure.bbox.y0 <= box.y0
        assert not any(other is not None and box.overlaps(other) for other in boxes[:number])


def test_marks_of_almost_equal_rates_stay_on_the_paper() -> None:
    topology = many()["star"]
    values = np.linspace(11.0456e6, 11.7654e6, len(topology.sensors))
    figure = picture(topology, hues=Hues("rate", 1, topology.sensors, values, values > 0))
    box = figure.axes[1].get_tightbbox()
    assert box is not None and box.x1 <= figure.bbox.x1 - 3


def test_a_cell_that_stands_for_its_devices_is_divided_among_colours() -> None:
    """Of 1,200 sensors in two cells, a quarter is in each of two classes, and half is out of coverage."""
    nodes = {"cloud": "cloud", "bs-0": "base_station", "bs-1": "base_station"}
    links = [("cloud", "bs-0"), ("cloud", "bs-1")]
    for number in range(1_200):
        nodes[f"s{number}"] = "sensor"
        links.append((f"s{number}", f"bs-{number // 600}"))
    values = np.array([0.0, 2.0, NAN, NAN] * 300)
    topology = network(nodes, links)
    found = Hues("class", 1, topology.sensors, values, np.array([True, True, False, False] * 300))
    figure = picture(topology, hues=found)
    (pieces,) = (drawn for drawn in figure.axes[0].collections if type(drawn) is PatchCollection)
    seen = [tuple(map(float, colour)) for colour in pieces.get_facecolor()]
    assert seen == [found.colour(UNCOVERED), found.colour(0), found.colour(255)] * 2
    lost, extreme, normal, *_ = (path.get_extents() for path in pieces.get_paths())
    assert lost.x1 == pytest.approx(extreme.x0) and extreme.y0 < normal.y0  # anticlockwise, from the top
    classes = {"300 of coverage class 0 (normal)", "300 of coverage class 2 (extreme)", "600 out of coverage"}
    assert classes <= set(entries(figure))
    assert "divided as its devices are among the colours" in caption(figure)


def test_many_different_ratios_are_a_few_pieces() -> None:
    found = hues("snr", list(np.linspace(0.0, 30.0, 500)))
    pieces = Counter(map(found.piece, found.steps))
    assert len(pieces) == 8 and max(pieces.values()) - min(pieces.values()) < 10


@pytest.mark.parametrize("radio", ["shannon", "nb_iot"])
def test_colours_are_of_what_the_radio_says_at_time_zero(radio: str) -> None:
    """And by position, where two radios take turns."""
    topology = {"name": "factory_park", "factories": 1, "devices_per_factory": 30, "stations_per_factory": 2}
    cells = {"factory-1/station-2": {"radio": RADIOS["fixed"]}}
    changes = {"topology": topology | {"radius_m": 900.0}, "network.cell.radio": RADIOS[radio], "network.cells": cells}
    whole = scenario(changes)
    built = whole.topology.build()
    own: Any = whole.network.cell.radio
    paths = [path for path in paths_of(built, Streams(5)) if path.station == 0]
    rates, ratios = own.rates_of(paths), own.snr_of(paths).uplink
    covered = (rates.uplink_bps > 0) & (rates.downlink_bps > 0)
    snr, rate = (device_hues(whole, built, 5, quantity) for quantity in ("snr", "rate"))
    low, high = ratios[covered].min(), ratios[covered].max()
    assert snr.scale.get_clim() == (low, high)
    expected = np.where(covered, np.rint((ratios - low) / (high - low) * 255), UNCOVERED)
    assert [snr.steps[path.sensor] for path in paths] == expected.tolist()
    assert {snr.steps[name] for name in built.sensors if built.cell_of(name) != "factory-1/station-1"} == {UNKNOWN}
    fastest = rates.uplink_bps[covered]
    assert rate.scale.get_clim() == (min(1e3, fastest.min()), max(1e3, fastest.max()))


@pytest.mark.parametrize(
    ("radio", "quantity", "message"),
    [
        ("fixed", "snr", "--colour snr: no radio here has signal-to-noise ratios (radio fixed); colour by rate"),
        (
            "shannon",
            "class",
            "--colour class: no radio here has coverage classes (radio shannon); colour by snr or rate",
        ),
        (
            "unlimited",
            "rate",
            "--colour rate: every uplink is unlimited (radio fixed), so there is nothing to tell apart",
        ),
    ],
)
def test_what_no_device_has_is_refused(radio: str, quantity: Quantity, message: str) -> None:
    whole = scenario({"network.cell.radio": RADIOS[radio]})
    with pytest.raises(UserError) as refused:
        device_hues(whole, whole.topology.build(), 1, quantity)
    assert str(refused.value) == message


def test_a_network_without_any_coverage_is_refused() -> None:
    deaf = {**RADIOS["nb_iot"], "snr": {**SNR, "device_power_dbm": -200.0}}
    whole = scenario({"network.cell.radio": deaf})
    with pytest.raises(UserError, match="the air reaches none of the devices at time zero"):
        device_hues(whole, whole.topology.build(), 1, "snr")
