"""A graph that has no clear meaning is refused: the key that is blamed, and what is said.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from drawn_towns import ZOO, parallels, refusal, triangle
from pydantic import ValidationError

from fedsim.topology.imported import Imported

pytestmark = pytest.mark.usefixtures("folder_of_its_own")


def self_loop() -> nx.Graph[str]:
    graph = triangle()
    graph.add_edge("Linz", "Linz")
    return graph


def unlike_ways() -> nx.DiGraph[str]:
    graph = triangle(bps=1.0).to_directed()
    graph.edges["Linz", "Vienna"]["bps"] = 2.0
    return graph


def mixed_directions() -> str:
    return ZOO.replace("  </graph>", '<edge source="1" target="0" directed="true"/></graph>')


def placed(**places: tuple[float, float] | tuple[float]) -> nx.Graph[str]:
    graph = triangle()
    for name, place in places.items():
        graph.nodes[name].update(zip(("lat", "lon"), place, strict=False))
    return graph


ON_THE_GLOBE = {"position": {"latitude": "lat", "longitude": "lon"}}
RATED = {"rate_attribute": "bps"}
LATE = {"delay_attribute": "s"}
FILE = "zoo.json: "

REFUSED: dict[str, tuple[nx.Graph[Any] | str, dict[str, Any], str, str]] = {
    # keys that do not fit each other
    "kinds of nothing": (triangle(), {"kinds": {"a": "edge"}}, "kinds", "means nothing without kind_attribute; ..."),
    "a radius of nothing": (
        triangle(),
        {"radius_m": 1.0, "sensors_per_station": None},
        "radius_m",
        "means nothing without sensors_per_station; ...",
    ),
    "two delays": (
        placed(),
        {**ON_THE_GLOBE, "delay_from_distance": {}, **LATE},
        "delay_from_distance",
        "cannot stand beside delay_attribute; keep one of the two",
    ),
    "half a position": (
        triangle(),
        {"position": {"latitude": "lat", "y": "lon"}},
        "position",
        "needs latitude and longitude, or x and y, and this has latitude and y",
    ),
    "no position": (triangle(), {"position": {}}, "position", "needs ..., and this has none of them"),
    "a unit of degrees": (
        triangle(),
        {"position": {**ON_THE_GLOBE["position"], "unit_m": 2.0}},
        "position.unit_m",
        "means nothing with latitude and longitude; remove it",
    ),
    # nodes
    "an unknown cloud": (
        triangle(),
        {"clouds": ["Graz", "Wienna"]},
        "clouds.1",
        "zoo.json has no node 'Wienna'; did you mean 'Vienna'?",
    ),
    "a cloud twice": (triangle(), {"clouds": ["Graz"] * 2}, "clouds.1", "'Graz' stands twice; name each cloud once"),
    "no cloud": (
        triangle(),
        {"clouds": []},
        "clouds",
        "no node of zoo.json is a cloud, and at least one must be: it holds the global model; name it",
    ),
    "no such name attribute": (
        ZOO,
        {"name_attribute": "labels"},
        "name_attribute",
        "no node has an attribute 'labels'; did you mean 'label'? "
        "(attributes: Internal, Latitude, id, Longitude, label)",
    ),
    "a node without a name": (
        ZOO.replace("Latitude", "Country").replace(">1.0<", ">2.0<").replace('d29">0.0', 'd29">A', 1),
        {"name_attribute": "Country"},
        "name_attribute",
        "zoo.graphml:34: node '3' has no 'Country'; correct the file, or leave name_attribute out to call ...",
    ),
    "two nodes of one name": (
        ZOO,
        {"name_attribute": "Internal"},
        "name_attribute",
        "zoo.graphml:20: node '1': Internal='1' is also that of node '0'; correct the file, or ...",
    ),
    "a name that cannot be printed": (
        ZOO.replace("Bregenz", "Bre&#10;genz"),
        {"name_attribute": "label"},
        "name_attribute",
        "zoo.graphml:34: node '3': label='Bre\\ngenz' is no name, because it is no text that can be printed; ...",
    ),
    "a value without meaning": (
        placed(Linz=(1.0,)),
        {"kind_attribute": "lat", "kinds": {"2.0": "edge"}},
        "kinds",
        FILE + "node 'Linz': lat=1.0 is none of 2.0; say in kinds what it means; did you mean '2.0'?",
    ),
    "a value that is no kind": (
        ZOO,
        {"clouds": ["0"], "kind_attribute": "label"},
        "kinds",
        "zoo.graphml:13: node '0': label='Vienna' is none of sensor, base_station, edge, cloud; say in kinds what ...",
    ),
    "no sensors": (
        triangle(),
        {"sensors_per_station": None},
        "sensors_per_station",
        "zoo.json has no sensors, and there must be some: they hold the data; set "
        "sensors_per_station to the number at each base station",
    ),
    "no base stations": (
        triangle(),
        {"kind": "edge"},
        "sensors_per_station",
        "no node of zoo.json is a base station, where sensors could be added; set kind, leaf_kind or kinds",
    ),
    "too many sensors": (
        triangle(),
        {"sensors_per_station": 500_001},
        "sensors_per_station",
        "makes 1,000,002 sensors in all, and at most 1,000,000 are simulated; lower it",
    ),
    "a sensor's name that is taken": (
        nx.path_graph(["Vienna", "Linz", "Linz/sensor-1"]),
        {},
        "path",
        FILE + "there is another node called 'Linz/sensor-1', and names must differ; rename one",
    ),
    # places
    "half a place": (
        placed(Linz=(1.0,), Graz=(1.0, 2.0)),
        ON_THE_GLOBE,
        "position",
        FILE + "node 'Linz' has no 'lon', and a position needs both; add it",
    ),
    "a place beyond the pole": (
        placed(Linz=(91.0, 0.0)),
        ON_THE_GLOBE,
        "position",
        FILE + "node 'Linz': lat=91.0 must be a number from -90 to 90",
    ),
    "sensors around nowhere": (
        triangle(),
        {"radius_m": 1.0},
        "radius_m",
        "base station 'Linz' has no position without the key position, so no sensors can stand around it; leave it out",
    ),
    "sensors around a station without a place": (
        placed(Linz=(1.0, 1.0)),
        {**ON_THE_GLOBE, "radius_m": 1.0},
        "radius_m",
        "base station 'Graz' has no position in the file, so no sensors can stand around it; leave it out",
    ),
    # links
    "no such rate": (
        triangle(bps=1),
        {"rate_attribute": "bsp"},
        "rate_attribute",
        "no link has an attribute 'bsp'; did you mean 'bps'? (attributes: bps, source, target)",
    ),
    "a rate in words": (
        triangle(bps="1 Gbit/s"),
        RATED,
        "rates",
        FILE + "link 'Vienna' - 'Linz': bps='1 Gbit/s' must be a number; say in rates what else it means, in bit/s",
    ),
    "a rate of nothing": (
        triangle(bps=0),
        RATED,
        "rate_attribute",
        FILE + "link 'Vienna' - 'Linz': bps=0 is 0 bit/s, and must be from 1e-18 to 1e+18; correct the file, or ...",
    ),
    "a delay before its cause": (
        triangle(s=-1.0),
        LATE,
        "delay_attribute",
        FILE
        + "link 'Vienna' - 'Linz': s=-1.0 must be a number of at least 0, and at most 1e+18 s; correct the file, ...",
    ),
    "a link without a rate": (
        triangle(),
        {"rate_attribute": "source", "rates": {"Vienna": 1.0, "Linz": 2.0}, **LATE},
        "delay_attribute",
        "no link has an attribute 's' (attributes: source, target)",
    ),
    "a link to itself": (
        self_loop(),
        {},
        "path",
        FILE + "'Linz' is linked to itself, and a link must join two nodes; remove it",
    ),
    "a direction": (
        triangle().to_directed(),
        {"directed": "refuse"},
        "directed",
        FILE
        + "link 'Vienna' - 'Linz' has a direction, and a wire goes both ways; write directed: merge to drop directions",
    ),
    "another rate on the way back": (
        unlike_ways(),
        RATED,
        "directed",
        FILE + "link 'Vienna' - 'Linz' has rate_bps=1 and no delay_s, and the way back rate_bps=2 and no delay_s; "
        "a wire is the same both ways: correct the file",
    ),
    "one way and both ways": (
        mixed_directions(),
        {"clouds": ["0"]},
        "path",
        "zoo.graphml:52: link '0' - '1': one link between these has a direction and another has none; correct the file",
    ),
    "parallel links": (
        parallels(bps=[1.0, 2.0]),
        {},
        "parallel",
        FILE
        + "link 'Vienna' - 'Linz' is one of 2 links between the same nodes; keep one, or write parallel: fastest ...",
    ),
    "a sum of nothing": (
        parallels(bps=[1.0, 2.0]),
        {"parallel": "sum"},
        "parallel",
        FILE + "link 'Vienna' - 'Linz' is one of 2 links between the same nodes, and without rates there is no sum of "
        "them; set rate_attribute or rate_bps",
    ),
    "a sum too large to count": (
        parallels(bps=[1e18, 1e18]),
        {**RATED, "parallel": "sum"},
        "path",
        FILE + "link 'Vienna' - 'Linz' is one of 2 links between the same nodes, and the sum of their rates is larger "
        "than 1e+18 bit/s",
    ),
    "an island": (
        nx.union(triangle(), nx.path_graph(["Oslo", "Bergen"])),
        {},
        "path",
        FILE + "sensor 'Oslo/sensor-1' (and 3 more) has no way to the cloud 'Vienna', and must have one; ...",
    ),
    # the file
    "another format": (ZOO, {"path": "zoo.gml"}, "path", "zoo.gml: a graph file must end in .json or .graphml; ..."),
    "no file": (
        ZOO,
        {"path": "zoe.graphml"},
        "path",
        "zoe.graphml: there is no such file; did you mean 'zoo.graphml'?",
    ),
}


@pytest.mark.parametrize(("content", "keys", "blamed", "message"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_clear_meaning_is_refused(
    content: nx.Graph[Any] | str, keys: dict[str, Any], blamed: str, message: str
) -> None:
    file = {} if isinstance(content, str) else {"path": "zoo.json"}
    if isinstance(content, str) and "path" in keys:
        Path("zoo.graphml").write_text(content, encoding="utf-8")
        with pytest.raises(ValidationError) as refused:
            Imported.model_validate({"name": "imported", **keys})
        [details] = refused.value.errors()
        key, said = ".".join(details["ctx"]["error"].key), str(details["ctx"]["error"])
    else:
        key, said = refusal(content, **file, **keys)
    pattern = ".*".join(re.escape(part) for part in message.split("..."))
    assert re.fullmatch(pattern, said), said
    assert key == blamed
