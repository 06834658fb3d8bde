"""A large network costs what is used of it: counted in objects, not in seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_worlds import scenario, simulated

from fedsim.errors import UserError
from fedsim.experiment.describe import describe
from fedsim.kernel.clock import Clock
from fedsim.kernel.streams import Streams
from fedsim.network import patience
from fedsim.network.cuts import Cuts
from fedsim.network.wires import Wires
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.load import written_out
from fedsim.topology.ring import Ring

FAULT = {"link": ["factory-0001/edge", "factory-1000/edge"], "at_s": 0.0}


def ring(factories: int, **changes: Any) -> dict[str, Any]:
    return {"topology": {"name": "ring", "factories": factories, "devices_per_factory": 1}, **changes}


def test_channels_and_hops_of_wires_are_made_when_something_is_sent_there() -> None:
    settings = scenario(ring(30))
    wires = Wires(Clock(), settings.topology.build(), settings.network, Streams(1))
    assert not any(link.channels_used for link in wires.links)
    way = wires.attachments[1].uplink
    assert not any(link.channels_used for link in wires.links)
    assert way[0].channel is way[0].link.channels[0] and way[1] is wires.attachments[1].backbone.uplink[0]
    assert sum(bool(link.channels_used) for link in wires.links) == 1
    assert len({id(link.medium) for link in wires.links}) == 2  # of the air, and of the wires


def test_links_alike_and_infrastructure_are_kept_once() -> None:
    topology = Ring(factories=50, devices_per_factory=1).build()
    links = {id(link) for _, _, link in topology.graph.edges(data=True)}
    assert len(links) == 1
    for node in topology.infrastructure:
        assert topology.infrastructure.nodes[node] is topology.graph.nodes[node]
    copy = topology.graph.copy()  # is the caller's own
    copy["cloud"]["factory-01/edge"]["rate_bps"] = 1.0
    assert topology.graph["cloud"]["factory-01/edge"]["rate_bps"] is None


@pytest.mark.parametrize("routing", ["fixed", "around_outages"])
def test_an_outage_in_a_ring_lists_nobodys_way(routing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = scenario(ring(1000, faults={"scheduled": [FAULT], "routing": routing}))
    world = build_world(settings, settings.protocols[0], gather_materials(settings, 1), lambda *_: None)  # type: ignore[arg-type,return-value]
    listed: list[object] = []
    monkeypatch.setattr(Wires, "path", lambda *nodes: listed.append(nodes) or ())
    world.env.run(until=0.5)
    reachable = sum(client.attachment.reachable for client in world.clients)
    lost = sum(world.outages.fate(client.attachment) is not None for client in world.clients)
    assert (reachable, lost) == ((501, 499) if routing == "fixed" else (1000, 0))
    assert not listed


def test_a_node_behind_a_cut_is_found_for_all_nodes_at_once() -> None:
    settings = scenario(ring(5))
    wires = Wires(Clock(), settings.topology.build(), settings.network, Streams(1))
    towards = {"factory-1/edge": "cloud", "factory-2/edge": "factory-1/edge", "factory-5/edge": "factory-1/edge"}
    cuts, link = Cuts(), wires.wire("factory-1/edge", "factory-2/edge")
    assert [cuts.on_the_way(node, towards) for node in towards] == [False, False, False]
    cuts.add(link)
    assert [cuts.on_the_way(node, towards) for node in towards] == [False, True, False]
    cuts.discard(link)
    assert [cuts.on_the_way(node, towards) for node in towards] == [False, False, False]


def test_describe_refuses_by_number_what_would_take_for_ever() -> None:
    settings = scenario(ring(4_000, stop={"rounds": 2}, protocols=[{"name": "fedavg", "fraction": 1.0}]))
    with pytest.raises(UserError, match=r"lead over about 16,\d{3},\d{3} hops, and describe simulates at most 10,000"):
        describe(settings)


def test_failures_for_ever_while_nothing_ends_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MOST_CHANGES", 50)
    station = {"node": "station", "at_s": 0.0, "for_s": 0.001, "every_s": 0.0010000001}
    with pytest.raises(UserError, match=r"things failed 50 times while no message came to an end; let them fail less"):
        simulated({"faults": {"scheduled": [station]}})


def test_a_packet_is_tried_10_000_times_at_most() -> None:
    with pytest.raises(ValueError, match="less than or equal to 10000"):
        scenario({"network.link": {"rate_bps": 1e6, "loss": {"probability": 0.999, "attempts": 10_001}}})


@pytest.mark.long
@pytest.mark.parametrize("topology", ["factory_park", "ring"])
def test_validating_100_000_factories_takes_at_most_600_mb(topology: str, tmp_path: Path) -> None:
    written = scenario({"topology": {"name": topology, "factories": 100_000, "devices_per_factory": 1}})
    path = tmp_path / "large.yaml"
    path.write_text(written_out(written))
    command = [sys.executable, "-m", "fedsim", "validate", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert used.ru_maxrss <= 600_000  # kB, on Linux
