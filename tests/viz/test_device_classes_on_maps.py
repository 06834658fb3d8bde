"""A network's picture tells classes of devices apart: by shape and colour, and as parts of a cell that hides them."""

from __future__ import annotations

import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from drawn_networks import caption, entries, links_table, picture, plant, scattered, settings
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from fedsim.cli import main
from fedsim.topology.factories import FactoryPark
from fedsim.topology.graph import Topology
from fedsim.viz.topology_map.drawing import class_look
from fedsim.viz.topology_map.loads import measured
from fedsim.viz.topology_map.places import Net

WHITE = to_rgba("white")


def of_classes(topology: Topology, *names: str | None) -> Topology:
    """The same network; its sensors have these classes in turn."""
    graph = nx.Graph(topology.graph)
    for number, sensor in enumerate(topology.sensors):
        graph.nodes[sensor]["device"] = names[number % len(names)]
    return Topology(graph)


def sensors(figure: Figure) -> list[tuple[int, bytes, tuple[float, ...]]]:
    """How many there are of each marker: number, shape, colour."""
    return [
        (len(drawn.get_offsets()), drawn.get_paths()[0].vertices.tobytes(), tuple(map(float, drawn.get_facecolor()[0])))
        for drawn in scattered(figure).get("sensor", [])
    ]


def test_each_class_has_a_shape_and_a_colour_and_the_legend_counts_it() -> None:
    figure = picture(of_classes(plant(), "camera", "robot"))
    (cameras, round_shape, white), (robots, other_shape, blue) = sensors(figure)
    assert (cameras, robots) == (2, 1)
    assert round_shape != other_shape and white == WHITE != blue
    assert {"2 of class camera", "1 of class robot"} <= set(entries(figure))
    assert "3 sensors" not in entries(figure)


def test_one_class_alone_is_drawn_as_sensors_are() -> None:
    assert sensors(picture(of_classes(plant(), "camera"))) == sensors(picture(plant()))
    assert "3 sensors" in entries(picture(of_classes(plant(), "camera")))


def test_who_has_no_class_in_the_topology_has_the_scenarios_default() -> None:
    assert "2 of class camera" in entries(picture(Net(of_classes(plant(), None, "robot"), (), "camera")))


def test_where_colours_are_loads_classes_differ_in_shape_alone() -> None:
    topology = of_classes(plant(), "camera", "robot")
    loads = measured(links_table(topology, lambda *_: 0.5), Net(topology), settings(), topology.cloud)
    found = sensors(picture(topology, loads))
    assert [colour for _, _, colour in found] == [WHITE, WHITE]
    assert len({shape for _, shape, _ in found}) == 2


def test_a_cell_that_hides_its_sensors_is_cut_into_its_classes() -> None:
    park = FactoryPark(factories=2, devices_per_factory=600).build()
    figure = picture(of_classes(park, "camera", "robot", "camera"))
    assert sensors(figure) == []
    (pieces,) = (one for one in figure.axes[0].collections if type(one) is PatchCollection)
    assert [tuple(map(float, colour)) for colour in pieces.get_facecolor()] == [WHITE, class_look(1)[1]] * 2
    first, second, *_ = (np.ptp(path.vertices, axis=0).prod() for path in pieces.get_paths())
    assert first > second  # two thirds and one third
    assert {"800 of class camera", "400 of class robot"} <= set(entries(figure))
    assert "Each cell is divided as its devices are among the classes." in caption(figure)


@pytest.mark.parametrize("loaded", [False, True])
def test_36_classes_look_different_and_in_a_divided_cell_their_colours_do(loaded: bool) -> None:
    found = [class_look(number, coloured=not loaded) for number in range(36)]
    assert len(set(found)) == 36
    assert loaded or len({colour[:3] for _, colour in found[1:]} | {WHITE[:3]}) == 36


@pytest.mark.parametrize("name", ["a class of devices with a long name", "W" * 29, "$\\frac$_"])
@pytest.mark.parametrize("classes", [2, 9])
def test_the_legend_stays_inside_the_picture_whatever_classes_are_called(classes: int, name: str) -> None:
    park = FactoryPark(factories=3, devices_per_factory=20).build()
    figure = picture(of_classes(park, *(f"{name} {number}" for number in range(classes))))
    box = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and figure.bbox.y0 <= box.y0


def test_the_commands_tell_them_apart(tmp_path: Path) -> None:
    plant_yaml = tmp_path / "plant.yaml"
    plant_yaml.write_text(
        "name: plant\nstop: {rounds: 1}\n"
        "topology:\n  name: explicit\n"
        "  nodes: {c: {kind: cloud}, b: {kind: base_station}, s: {kind: sensor}, t: {kind: sensor, device: robot}}\n"
        "  links: [{between: [c, b]}, {between: [b, s]}, {between: [b, t]}]\n"
        "network: {cell: {radio: {name: fixed, profile: lte_m_m1}}, link: {rate_bps: 1e9}}\n"
        "devices:\n  default: camera\n"
        "  classes:\n    camera: &same {compute: {name: per_sample, seconds_per_sample: 0.1}}\n    robot: *same\n"
        "data: {name: declared, samples_per_client: 5}\n"
        "model: {name: declared, parameters: 100}\nlearn: false\n"
        "training: {learning_rate: 0.1, batch_size: 5}\nprotocols: [{name: fedavg, fraction: 1.0}]\n"
    )
    assert main(["draw", str(plant_yaml), "--out", str(tmp_path / "plant.svg")]) == 0
    assert main(["run", str(plant_yaml), "--out", str(tmp_path / "run")]) == 0
    assert main(["plot", str(tmp_path / "run"), "--format", "svg"]) == 0
    for drawing in (tmp_path / "plant.svg", tmp_path / "run/figures/network.svg"):
        assert re.findall("<!-- (1 of class .*) -->", drawing.read_text()) == ["1 of class camera", "1 of class robot"]
