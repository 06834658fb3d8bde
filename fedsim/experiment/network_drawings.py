"""Drawings of networks as files: of a scenario's topology, with or without the loads of a run."""

from __future__ import annotations

from pathlib import Path

from fedsim.errors import UserError
from fedsim.experiment.device_hues import device_hues
from fedsim.experiment.results import Results
from fedsim.files import shown
from fedsim.scenario.load import read_network
from fedsim.scenario.schema import Scenario, WrittenNetwork
from fedsim.topology.graph import Topology
from fedsim.viz.save import save_figure
from fedsim.viz.topology_map.figure import network_figure
from fedsim.viz.topology_map.hues import Hues, Quantity
from fedsim.viz.topology_map.loads import measured
from fedsim.viz.topology_map.places import Net

__all__ = ["FORMATS", "draw_run", "draw_scenario"]

FORMATS = (".png", ".svg", ".pdf")
"""What the name of a drawing may end in."""


def draw_run(results: Results, path: Path, title: str | None = None) -> Path:
    """Draw the network of a run and its loads, a panel for each protocol, into the file *path*; returns *path*.

    The title is the scenario's name unless another is given. Raises `UserError` when the run folder has lost its
    scenario or its table of links, or its scenario is none that this version reads.
    """
    own = read_network(results.folder / "scenario.yaml")
    return _draw(own.topology.build(), own, path, results, title)


def draw_scenario(
    scenario: Scenario,
    path: Path,
    results: Results | None = None,
    title: str | None = None,
    *,
    topology: Topology | None = None,
    colour: Quantity | None = None,
) -> Path:
    """Draw a scenario's topology, with the loads of a run on it if there is one, into *path*; returns *path*.

    Wires with planned outages are dashed. *topology* is the scenario's, where it is already there. Without a run,
    sensors may have a *colour*: by their uplink's ratio or rate or by coverage class at time zero of the
    scenario's first seed.

    Raises `UserError` when the topology is none, when the run was on another one, and when no sensor has what is to be
    its colour.
    """
    if topology is None:
        with scenario.about("topology"):
            topology = scenario.topology.build()
    hues = colour and device_hues(scenario, topology, scenario.seeds[0], colour)
    return _draw(topology, scenario, path, results, title, hues)


def _draw(
    topology: Topology,
    scenario: Scenario | WrittenNetwork,
    path: Path,
    results: Results | None,
    title: str | None,
    hues: Hues | None = None,
) -> Path:
    net, loads, seeds = Net(topology, scenario.faults.scheduled, scenario.devices.default_class), None, 1
    subject = f": {hues.words}" if hues else ""
    if results is not None:
        network = read_network(results.folder / "scenario.yaml").network
        try:
            loads = measured(results.links, net, network, network.server or topology.cloud)
        except UserError as error:
            own = results.folder / "scenario.yaml"
            raise UserError(f"{shown(results.folder)}: {error}; draw its own network, {own}") from error
        seeds, subject = results.links["seed"].nunique(), ": load of the network"
    figure = network_figure(f"{title or scenario.name}{subject}", net, loads, seeds, hues)
    path.parent.mkdir(parents=True, exist_ok=True)
    return save_figure(figure, path)
