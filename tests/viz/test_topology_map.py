"""A network's picture shows every node, every wire and every load, and nothing covers anything else."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn_networks import caption, cell, entries, links_table, many, network, picture, plant, scattered, settings, used
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from tiers import mostly_long

from fedsim.network.faults.settings import ScheduledFault
from fedsim.topology.factories import FactoryPark, Regions
from fedsim.topology.graph import Topology
from fedsim.viz.save import save_figure
from fedsim.viz.topology_map.drawing import PLAIN_DISC
from fedsim.viz.topology_map.loads import IDLE, UNSHARED, Measured, measured
from fedsim.viz.topology_map.places import Net


def some(link: str, direction: str) -> float:
    return (sum(map(ord, link + direction)) % 97) / 100


def measured_on(topology: Topology, table: pd.DataFrame | None = None, duplex: str = "shared") -> Measured:
    table = links_table(topology, some) if table is None else table
    return measured(table, Net(topology), settings(duplex), topology.cloud)


@cache
def pictured(name: str, with_loads: bool = False) -> Figure:
    """The picture of one of many networks, drawn once for all tests that only look at it."""
    topology = many()[name]
    return picture(topology, measured_on(topology) if with_loads else None)


@cache
def small_park() -> Figure:
    return picture(FactoryPark(factories=4, devices_per_factory=6).build())


def markers(figure: Figure) -> dict[str, int]:
    return {label: sum(len(drawn.get_offsets()) for drawn in several) for label, several in scattered(figure).items()}


def colours(ax: Axes, kind: type[PatchCollection | LineCollection]) -> list[tuple[float, ...]]:
    drawn = [one for one in ax.collections if type(one) is kind]
    found = [one.get_facecolor() if kind is not LineCollection else one.get_edgecolor() for one in drawn]
    return [tuple(map(float, colour)) for several in found for colour in np.atleast_2d(several)]


def names(ax: Axes) -> list[Annotation]:
    return [text for text in ax.texts if isinstance(text, Annotation) and text.xycoords == "axes points"]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in names(figure.axes[0])]


def test_every_node_has_the_marker_of_its_kind() -> None:
    figure = picture(FactoryPark(factories=4, devices_per_factory=6, stations_per_factory=2).build())
    assert markers(figure) == {"cloud": 1, "edge": 4, "base_station": 8, "sensor": 24}
    assert entries(figure) == ["1 cloud", "4 edge servers", "8 base stations", "24 sensors", "8 cells", "12 wires"]


def test_markers_differ_in_shape_not_only_in_colour() -> None:
    shapes = {drawn.get_paths()[0].vertices.tobytes() for (drawn,) in scattered(picture(plant())).values()}
    assert len(shapes) == 4


def test_without_loads_nothing_is_coloured() -> None:
    figure = picture(plant())
    (ax,) = figure.axes  # and there is no colour bar
    assert set(colours(ax, PatchCollection)) == {PLAIN_DISC}
    assert set(colours(ax, LineCollection)) == {UNSHARED}


def test_a_disc_has_the_colour_of_its_load() -> None:
    loads = measured_on(plant(), links_table(plant(), used))
    ax, _ = picture(plant(), loads).axes
    assert colours(ax, PatchCollection) == [loads.colour(0.7), loads.colour(0.1)]


def test_a_full_duplex_cell_is_uplink_on_the_left_and_downlink_on_the_right() -> None:
    loads = measured_on(plant(), links_table(plant(), used), "full")
    figure = picture(plant(), loads)
    ax, _ = figure.axes
    (discs,) = (drawn for drawn in ax.collections if type(drawn) is PatchCollection)
    expected = [*(loads.colour(load) for load in (0.3, 0.4, 0.1)), IDLE]
    assert colours(ax, PatchCollection) == [*map(pytest.approx, expected)]
    left, right, *_ = (path.get_extents() for path in discs.get_paths())
    assert left.x1 == pytest.approx(right.x0)
    assert "uplink in its left half, downlink in its right half" in caption(figure)


def test_each_half_of_a_wire_has_the_colour_of_what_its_end_sends() -> None:
    loads = measured_on(plant(), links_table(plant(), used))
    ax, _ = picture(plant(), loads).axes
    lines = [drawn for drawn in ax.collections if type(drawn) is LineCollection and len(drawn.get_edgecolor()) > 1]
    halves = [
        (*line[[0, -1]].tolist(), tuple(colour))
        for drawn in lines
        for line, colour in zip(drawn.get_segments(), drawn.get_edgecolor(), strict=True)
    ]
    assert len(halves) == 6
    highest = max(start[1] for start, _, _ in halves)
    ((_, middle, from_cloud),) = (half for half in halves if half[0][1] == highest)
    (from_edge,) = (colour for start, end, colour in halves if end == middle and start[1] < highest)
    assert (from_cloud, from_edge) == tuple(pytest.approx(loads.colour(load)) for load in (0.05, 0.02))


@pytest.mark.parametrize("with_loads", [False, True], ids=["plain", "loads"])
def test_wires_with_planned_outages_are_dashed_and_the_legend_says_so(with_loads: bool) -> None:
    loads = measured_on(plant()) if with_loads else None
    whole = ScheduledFault(link=("cloud", "edge"), at_s=3.0), ScheduledFault(node="a", at_s=3.0)  # which is a sensor
    for faults, dashed in ((whole, 1), ((ScheduledFault(node="edge", at_s=3.0, for_s=1.0),), 3), ((), 0)):
        figure = picture(Net(plant(), faults), loads)
        drawn = [one for one in figure.axes[0].collections if type(one) is LineCollection]
        halves = [len(one.get_segments()) for one in drawn if one.get_linestyle()[0][1] is not None]
        assert sum(halves) == 2 * dashed
        assert [entry for entry in entries(figure) if "wire" in entry] == ["3 wires"]
        said = [entry for entry in entries(figure) if "planned" in entry]
        assert said == ([f"{dashed} with planned outages"] if dashed else [])


def test_where_nothing_was_sent_is_white_and_the_legend_says_so() -> None:
    silent = measured_on(plant(), links_table(plant(), lambda *_: 0.0))
    figure = picture(plant(), silent)
    assert set(colours(figure.axes[0], PatchCollection)) == {IDLE}
    assert "nothing sent" in entries(figure)
    assert "nothing sent" not in entries(picture(plant(), measured_on(plant(), links_table(plant(), lambda *_: 0.1))))


def test_a_cell_in_which_nothing_can_be_full_is_grey() -> None:
    mixed = settings(cells={"bs-2": cell(discipline="dedicated")})
    figure = picture(plant(), measured(links_table(plant(), used), Net(plant()), mixed, "cloud"))
    assert colours(figure.axes[0], PatchCollection)[-1] == UNSHARED
    assert "a channel for each sender" in entries(figure)


def test_a_fuller_channel_is_darker_also_in_grey() -> None:
    red, green, blue, _ = np.array(measured_on(plant()).scale.get_cmap()(np.linspace(0, 1, 100))).T
    grey = 0.299 * red + 0.587 * green + 0.114 * blue  # ITU-R BT.601
    assert (np.diff(grey) < 0).all()
    assert grey[0] - grey[-1] > 0.6
    assert grey[0] < 0.95  # still to be seen on white
    assert grey[-1] > np.mean(to_rgba("#33383e")[:3]) / 2


def test_the_colour_bar_names_the_unit() -> None:
    _, bar = picture(plant(), measured_on(plant(), links_table(plant(), used))).axes
    assert bar.get_ylabel() == "utilisation, %"
    assert [label.get_text() for label in bar.get_yticklabels()] == ["0", "20", "40", "60", "80", "100"]
    in_bytes = measured(links_table(plant(), used), Net(plant()), settings(discipline="dedicated"), "cloud")
    _, bar = picture(plant(), in_bytes).axes
    assert bar.get_ylabel() == "sent"
    assert bar.get_yticklabels()[-1].get_text() == "100 MB"


def test_each_protocol_has_a_panel_with_its_busiest_links() -> None:
    tables = [links_table(plant(), used, ["fedavg"]), links_table(plant(), lambda *_: 0.01, ["5$ prox"])]
    figure = picture(plant(), measured_on(plant(), pd.concat(tables)))
    said = [(ax.get_title(loc="left"), ax.texts[0].get_text()) for ax in figure.axes[:2]]
    assert len(figure.axes) == 3
    assert said[0] == ("fedavg", "busiest cell: bs-1, 70 %\nbusiest wire: cloud to edge, 5 %")
    assert said[1] == (r"5\$ prox", "busiest cell: bs-1, 2 %\nbusiest wire: edge to cloud, 1 %")


PANELS = [(1, 1, 1), (3, 1, 3), (4, 2, 2), (7, 3, 3)]


@pytest.mark.parametrize(("protocols", "rows", "columns"), mostly_long(PANELS, now=[PANELS[0], PANELS[2]]))
def test_panels_stand_in_rows_of_equal_size(protocols: int, rows: int, columns: int) -> None:
    topology = FactoryPark(factories=4, devices_per_factory=6).build()
    table = links_table(topology, some, [f"protocol-{number}" for number in range(protocols)])
    figure = picture(topology, measured_on(topology, table))
    boxes = [ax.get_position() for ax in figure.axes[:protocols]]
    assert len({round(box.x0, 6) for box in boxes}) == columns
    assert len({round(box.y0, 6) for box in boxes}) == rows
    assert len({(round(box.width, 6), round(box.height, 6)) for box in boxes}) == 1


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_caption_says_over_how_many_seeds_a_mean_is(seeds: int) -> None:
    text = caption(picture(plant(), measured_on(plant()), seeds))
    assert ("mean over 3 seeds" in text) is (seeds == 3)


def test_a_map_has_metres_on_its_axes_and_a_drawing_without_positions_none() -> None:
    (ground,) = small_park().axes
    assert (ground.get_xlabel(), ground.get_ylabel()) == ("x, m", "y, m")
    (far,) = picture(FactoryPark(factories=4, devices_per_factory=6, factory_spacing_m=9e3, radius_m=900).build()).axes
    assert far.get_xlabel() == "x, km"
    figure = picture(plant())
    assert not figure.axes[0].axison
    assert "The nodes have no positions" in caption(figure)


def test_the_caption_tells_what_is_not_in_place() -> None:
    text = caption(small_park())
    assert "What is above the dotted line has no position." in text
    assert "4 nodes are drawn beside the position, where another one stands." in text
    assert "Where they are, nodes would hide each other or wires" in caption(pictured("regions"))


@pytest.mark.parametrize("devices", [3, 6])
def test_a_few_sensors_have_names_and_many_have_none(devices: int) -> None:
    figure = picture(FactoryPark(factories=3, devices_per_factory=devices, factory_spacing_m=150).build())
    assert markers(figure)["sensor"] == 3 * devices
    assert any("factory-2/" in word and "sensor-1" in word for word in words(figure)) is (devices == 3)


def test_cells_that_do_not_show_their_sensors_say_how_many_they_have() -> None:
    park = FactoryPark(factories=4, devices_per_factory=200).build()
    figure = picture(park)
    assert "sensor" not in markers(figure)
    assert {f"factory-{number}/station-1\n200 sensors" for number in range(1, 5)} <= set(words(figure))
    assert "4 cells of 200 sensors" in entries(figure)


def test_cells_of_different_sizes_are_told_by_their_range() -> None:
    kinds = {"c": "cloud", "b1": "base_station", "b2": "base_station"}
    cells = {f"s{i}": "b1" if i < 1 else "b2" for i in range(900)}
    figure = picture(network({**kinds, **dict.fromkeys(cells, "sensor")}, [("c", "b1"), ("c", "b2"), *cells.items()]))
    assert "2 cells of 1 to 899 sensors" in entries(figure)
    assert {"b1\n1 sensor", "b2\n899 sensors"} <= set(words(figure))


@pytest.mark.parametrize("sensors_per_station", [10, pytest.param(100, marks=pytest.mark.long)])
def test_a_hundred_thousand_sensors_are_a_thousand_discs(sensors_per_station: int) -> None:
    """And ten thousand in as many cells are drawn no otherwise."""
    devices = 10 * sensors_per_station
    park = FactoryPark(factories=100, devices_per_factory=devices, stations_per_factory=10).build()
    figure = picture(park, measured_on(park))
    ax, _ = figure.axes
    assert sum(len(drawn.get_paths()) for drawn in ax.collections if type(drawn) is PatchCollection) == 1000
    assert sum(markers(figure).values()) < 2000
    assert sum(len(drawn.get_offsets()) for drawn in ax.collections) < 10_000
    assert words(figure) == ["cloud"]
    assert f"1,000 base stations, each a cell of {sensors_per_station} sensors" in entries(figure)
    assert all(size < 15 for size in figure.get_size_inches())


def test_a_name_does_not_repeat_the_path_of_the_one_above() -> None:
    nodes = {"cloud": "cloud", "hall/edge": "edge", "hall/one": "base_station", "hall/two": "base_station"}
    links = [("cloud", "hall/edge"), ("hall/edge", "hall/one"), ("hall/edge", "hall/two"), ("hall/one", "s")]
    said = words(picture(network({**nodes, "s": "sensor"}, links)))
    assert said == ["cloud", "hall/edge", "one", "two", "s"]


def test_no_two_nodes_are_called_alike() -> None:
    said = words(small_park())
    stations, edges = ([f"factory-{i}/{what}" for i in range(1, 5)] for what in ("station-1", "edge"))
    assert said == ["cloud", *edges, *stations]


def test_names_that_are_too_long_for_one_line_take_several() -> None:
    said = words(picture(Regions(regions=3, factories_per_region=2, devices_per_factory=10).build()))
    each = [f"region-{i}/\nfactory-{j}/" for i in (1, 2, 3) for j in (1, 2)]
    assert said[3:] == [f"{place}\n{node}" for node in ("edge", "station-1") for place in each]
    assert said[:3] == [f"region-{i}/cloud" for i in (1, 2, 3)]


@pytest.mark.parametrize("name", many())
def test_names_tell_nodes_apart(name: str) -> None:
    said = [re.sub(r"\n[0-9,]+ sensors?$", "", word) for word in words(pictured(name))]
    assert len(set(said)) == len(said) > 0


def test_a_kind_for_whose_names_there_is_little_room_has_none() -> None:
    said = words(pictured("regions"))
    assert sorted(said) == [f"region-{number}/cloud" for number in range(1, 5)]


def test_names_are_shown_as_they_are_or_shortened_in_the_middle() -> None:
    long = "a-base-station-with-a-name-of-many-words"
    kinds = {"_$x^2$": "cloud", long: "base_station", "s": "sensor"}
    said = words(picture(network(kinds, [("_$x^2$", long), (long, "s")])))
    assert r" _\$x^2\$" in said
    assert any(word.startswith("a-base-") and "…" in word and word.endswith("-words") for word in said)


def test_letters_that_the_font_does_not_have_are_question_marks() -> None:  # and matplotlib does not warn
    kinds = {"车间-1": "cloud", "b": "base_station", "s": "sensor"}
    assert "??-1" in words(picture(network(kinds, [("车间-1", "b"), ("b", "s")])))


def test_a_wire_bends_around_a_node_that_it_does_not_join() -> None:
    at = {"c": (50.0, 90.0), "e": (0.0, 0.0), "b1": (100.0, 0.0), "b2": (200.0, 0.0), "b3": (0.0, -80.0)}
    kinds = {"c": "cloud", "e": "edge", "b1": "base_station", "b2": "base_station", "b3": "base_station", "s": "sensor"}
    wires = [("c", "e"), ("e", "b1"), ("e", "b2"), ("e", "b3")]
    (ax,) = picture(network(kinds, [*wires, ("b3", "s")], at)).axes
    lines = [line for drawn in ax.collections if type(drawn) is LineCollection for line in drawn.get_segments()]
    assert len(lines) == 2 * len(wires)
    bent = np.vstack([line for line in lines if len(line) > 2])  # from e to b2, on whose straight way b1 is
    assert bent[:, 0].min() < 15 and bent[:, 0].max() > 185 and bent[:, 1].min() >= 0
    assert np.linalg.norm(bent - at["b1"], axis=1).min() > 5


WITH_AND_WITHOUT = [(name, with_loads) for name in many() for with_loads in (False, True)]
LOADED = ("plant", "park", "ring with two clouds", "tree")
SOME = [(name, with_loads) for name, with_loads in WITH_AND_WITHOUT if not with_loads or name in LOADED]


@pytest.mark.parametrize(("name", "with_loads"), mostly_long(WITH_AND_WITHOUT, now=SOME))
def test_no_text_covers_another_one_or_a_marker_or_leaves_the_picture(name: str, with_loads: bool) -> None:
    figure = pictured(name, with_loads)
    renderer = FigureCanvasAgg(figure).get_renderer()
    panel = figure.axes[0]
    boxes = [text.get_window_extent(renderer) for text in names(panel)]
    assert all(is_inside(box, panel.get_window_extent(renderer)) for box in boxes)
    assert not any(one.shrunk(0.98, 0.9).overlaps(other) for one, other in combinations(boxes, 2))
    around = [ax.get_tightbbox(renderer) for ax in figure.axes]
    around += [artist.get_window_extent(renderer) for artist in (*figure.texts, *figure.legends)]
    assert all(is_inside(box, figure.bbox) for box in around)
    assert not any(one.shrunk(0.99, 0.99).overlaps(other) for one, other in combinations(around, 2))
    for drawn in (marker for several in scattered(figure).values() for marker in several):
        spots, radius = panel.transData.transform(drawn.get_offsets()), 0.5 * np.sqrt(drawn.get_sizes()[0])
        for box in boxes:
            nearest = np.clip(spots, box.p0, box.p1)
            assert (np.linalg.norm(spots - nearest, axis=1) >= radius * figure.dpi / 72 - 1).all()


def is_inside(box: Bbox, frame: Bbox, tolerance: float = 1.0) -> bool:
    return bool(
        box.x0 >= frame.x0 - tolerance
        and box.y0 >= frame.y0 - tolerance
        and box.x1 <= frame.x1 + tolerance
        and box.y1 <= frame.y1 + tolerance
    )


@pytest.mark.parametrize("suffix", mostly_long(["png", "svg", "pdf"], now=["svg"]))
@pytest.mark.parametrize("name", ["plant", "park", "ring with two clouds"])
def test_equal_networks_are_equal_files(tmp_path: Path, name: str, suffix: str) -> None:
    files = []
    for number in range(2):
        figure = picture(many()[name], measured_on(many()[name], duplex="full"))
        files.append(save_figure(figure, tmp_path / f"{number}.{suffix}").read_bytes())
    assert files[0] == files[1]
