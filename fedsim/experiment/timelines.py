"""Timelines of a finished run: its clock runs again, without training, and every device's doings are written down.

A run folder has no table of trainings, and may have none of transfers; both come again, bit for bit, as the clock never
depends on what is learned. Where it does, because a protocol decides on learned values or sends what is measured on
them, there is no timeline. That it is the same clock is known by the hash of the trace.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedsim.errors import UserError, nearest
from fedsim.experiment.results import Results
from fedsim.experiment.simulate import join, simulate
from fedsim.files import own_file_opener, shown, why_not_own_file
from fedsim.learning.learner import NoLearner
from fedsim.metrics.timeline import write_timeline
from fedsim.metrics.timeline_packets import MARK
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import NobodyLeft, Round
from fedsim.protocols.world import World
from fedsim.scenario.build import Materials, build_world, gather_materials
from fedsim.scenario.load import load
from fedsim.scenario.scalars import printable
from fedsim.scenario.schema import Scenario

__all__ = ["simulated_again", "write_timelines"]

ENDING = ".pftrace"
_HEAD_BYTES = 2_000
"""From the beginning of a timeline to the end of its mark, at most."""


def write_timelines(results: Results, folder: Path, *, only: str | None = None) -> Iterator[Path]:
    """Write a timeline of each protocol and seed of *results* into *folder*; yields the path of each when it is there.

    Of the protocol *only*, where that is given. An older timeline is replaced. The code that the run's scenario names
    is run, and its data are read. Raises `UserError` when there is no such protocol, when *folder* is the run folder
    itself or has another file in the place of a timeline, when the library perfetto is not installed, and when a run
    cannot be simulated again.
    """
    names = [row["protocol"] for row in results.manifest["runs"]]
    if only is not None and only not in names:
        known = ", ".join(dict.fromkeys(names))
        raise UserError(f"--only: the run has no protocol {printable(only)!r}{nearest(only, names)} (its own: {known})")
    files = _file_names(list(dict.fromkeys(names)))

    def place_of(row: dict[str, Any]) -> Path:
        return folder / f"{files[row['protocol']]}-seed-{row['seed']}{ENDING}"

    if os.path.realpath(folder) == os.path.realpath(results.folder):
        raise UserError(f"--out: {shown(folder)} is the run folder itself; choose another folder for timelines")
    for row in results.manifest["runs"]:
        if only is None or row["protocol"] == only:
            _check_place(place_of(row))
    for row, world in simulated_again(results, only=only):
        path = place_of(row)
        title = f"{results.name}: {row['protocol']}, seed {row['seed']}"
        clients = [client.name for client in world.clients]
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f".{path.name}.{os.getpid()}.tmp"
        try:
            with open(scratch, "wb", opener=own_file_opener) as file:
                network = world.network
                end_s = float(world.env.now)
                write_timeline(
                    file.write, world.trace, network.in_flight, network.links, clients, title=title, end_s=end_s
                )
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)
        yield path


def _check_place(path: Path) -> None:
    """Raise `UserError` unless what is at *path* is nothing, or a timeline."""
    problem = why_not_own_file(path)
    if problem is None and path.exists():
        with open(path, "rb", opener=own_file_opener) as file:
            problem = None if MARK.encode() in file.read(_HEAD_BYTES) else "there, and is no timeline of fedsim"
    if problem:
        raise UserError(f"{shown(path)} is {problem}; choose another folder with --out")


def simulated_again(results: Results, *, only: str | None = None) -> Iterator[tuple[dict[str, Any], World]]:
    """Each run of *results*, as its row of the manifest, and its world at the end, in which nothing was learned.

    Raises `UserError` when what happened cannot be known without learning, or is not what happened then.
    """
    scenario = load(results.folder / "scenario.yaml")
    protocols = {protocol.title: protocol for protocol in scenario.protocols}
    materials: Materials | None = None
    for row in results.manifest["runs"]:
        if only is not None and row["protocol"] != only:
            continue
        protocol = protocols.get(row["protocol"])
        run = f"{printable(row['protocol'])} on seed {row['seed']} in {shown(results.folder)}"
        if protocol is None:
            raise UserError(f"{run}: its scenario.yaml has no such protocol")
        if protocol.needs_learning:
            why = "its clock depends on what was learned"
            raise UserError(f"{run} cannot be simulated again without training: {why}; choose others with --only")
        if materials is None or materials.seed != row["seed"]:
            materials = gather_materials(scenario, row["seed"])
        world = _again(scenario, protocol, materials, row)
        if world.trace.digest() != row.get("trace_hash"):
            why = "the version of fedsim, the data or the code that the scenario names have changed since"
            raise UserError(f"{run} comes out differently when it is simulated again: {why}")
        yield row, world
        del world
        gc.collect()  # it is full of cycles


def _again(scenario: Scenario, protocol: Protocol, materials: Materials, row: dict[str, Any]) -> World:
    """The world at the end of a run, which learning may have ended before its time."""

    def on_round(done: Round) -> None:
        ended_here = scenario.newcomers is not None or done.sim_time_s >= row["sim_time_s"]
        if done.number == row["rounds"] and ended_here:
            raise NobodyLeft("the run ended here")

    world = build_world(scenario, protocol, materials, lambda *_: NoLearner(), on_round)
    simulate(world, protocol, protocol.stop or scenario.stop)
    if scenario.newcomers:
        join(world, scenario.newcomers)
    return world


def _file_names(titles: list[str]) -> dict[str, str]:
    """A name of a file for each title: its plain letters, and a number where these are not enough."""
    plain = {title: re.sub(r"[^A-Za-z0-9._-]+", "-", title).strip("-._")[:80] for title in titles}
    lower = [name.lower() for name in plain.values()]
    return {
        title: name if name and lower.count(name.lower()) == 1 else f"{number}-{name}".strip("-")
        for number, (title, name) in enumerate(plain.items(), start=1)
    }
