"""What was simulated, and where the numbers come from: a run's scenario and its manifest, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from fedsim.experiment.read_results import read_scenario
from fedsim.experiment.results import Results
from fedsim.report.parts import Section, Sheet
from fedsim.scenario.scalars import printable, show
from fedsim.viz.human import duration, size

__all__ = ["provenance", "scenario"]

_MOST_LETTERS = 500_000
"""Of a scenario that is shown."""
_Facts = Iterator[tuple[str, str]]


def scenario(results: Results, place: str) -> Section:
    """What was simulated; the whole file below it, as the run folder keeps it, unless it is very long.

    Raises `UserError` when the file is lost or damaged.
    """
    text, written = read_scenario(results.folder)
    key, words = f"scenario{place}", str(written.get("description") or "")
    facts = list(_counted(results.manifest, written))
    if len(text) > _MOST_LETTERS:
        path = printable(str(results.folder / "scenario.yaml"))
        too_long = f"The whole scenario is not shown: {path} has more than {_MOST_LETTERS:,} letters."
        return Section(key, "Scenario", words, facts, missing=[too_long])
    listing = "\n".join(map(printable, text.splitlines()))
    return Section(key, "Scenario", words, facts, listing=listing)


def _counted(manifest: Mapping[str, Any], written: Mapping[str, Any]) -> _Facts:
    """Names and values, as far as they are known."""
    parts = {key: written.get(key) for key in ("topology", "data", "model", "network", "stop", "protocols", "devices")}
    protocols = list(dict.fromkeys(str(run["protocol"]) for run in manifest["runs"]))
    if protocols:
        yield "protocols", ", ".join(protocols)
    seeds = list(dict.fromkeys(str(run["seed"]) for run in manifest["runs"]))
    if seeds:
        yield "seeds", ", ".join(seeds)
    if isinstance(manifest.get("clients"), int):
        yield "clients", f"{manifest['clients']:,}"
    if kinds := _keys(parts["devices"], "classes"):
        yield "device classes", ", ".join(kinds)
    if topology := _named(parts["topology"]):
        yield "topology", topology
    if radio := _radio(parts["network"]):
        yield "radio of a cell", radio
    if name := _named(parts["data"]):
        classes, shape = manifest.get("classes"), manifest.get("sample_shape")
        known = [f"{classes:,} classes"] if isinstance(classes, int) else []
        known += [f"samples of {' x '.join(map(str, shape))}"] if isinstance(shape, list) and shape else []
        yield "data", ", ".join([name, *known])
    if name := _named(parts["model"]):
        yield "model", ", ".join([name, *_model(manifest.get("model"))])
    if isinstance(parts["stop"], Mapping):
        limits = [f"{key} {show(value)}" for key, value in parts["stop"].items() if value is not None]
        if limits:
            yield "stops at", ", ".join(limits)


def _keys(part: object, key: str) -> list[str]:
    inside = part.get(key) if isinstance(part, Mapping) else None
    return [printable(str(name)) for name in inside] if isinstance(inside, Mapping) else []


def _named(part: object) -> str:
    name = part.get("name") if isinstance(part, Mapping) else None
    return printable(name) if isinstance(name, str) else ""


def _radio(part: object) -> str:
    cell = part.get("cell") if isinstance(part, Mapping) else None
    radio = cell.get("radio") if isinstance(cell, Mapping) else None
    profile = radio.get("profile") if isinstance(radio, Mapping) else None
    return f"{_named(radio)}, {printable(profile)}" if isinstance(profile, str) else _named(radio)


def _model(facts: object) -> Iterator[str]:
    if isinstance(facts, Mapping) and all(isinstance(facts.get(key), int | float) for key in ("parameters", "bytes")):
        yield f"{facts['parameters']:,.0f} parameters"
        yield size(facts["bytes"])


def provenance(results: Results, place: str) -> Section:
    """Versions, machine, arithmetic, and a digest of each trace: equal digests are equal simulations."""
    manifest = results.manifest
    words = "Where the numbers come from. Runs with the same trace hash have the same events at the same times."
    runs = manifest["runs"]
    cells = pd.DataFrame(
        {
            "protocol": [str(run["protocol"]) for run in runs],
            "seed": [str(run["seed"]) for run in runs],
            "rounds": [f"{run.get('rounds', 0):,}" for run in runs],
            "simulated time": [duration(run.get("sim_time_s", 0.0)) for run in runs],
            "real time": [duration(run.get("real_seconds", 0.0)) for run in runs],
            "trace hash": [printable(str(run.get("trace_hash", ""))) for run in runs],
            "cut short by": [run.get("cut_short") or "" for run in runs],
        }
    )
    if not cells["cut short by"].any():
        cells = cells.drop(columns="cut short by")
    sheets = [Sheet("Runs", cells, names=2)] if runs else []
    return Section(f"provenance{place}", "Provenance", words, list(_origin(manifest)), results.remarks, sheets)


def _origin(manifest: Mapping[str, Any]) -> _Facts:
    for key, title in (("fedsim", "fedsim"), ("python", "Python")):
        if isinstance(manifest.get(key), str):
            yield title, printable(manifest[key])
    packages = manifest.get("packages")
    if isinstance(packages, Mapping):
        yield "packages", ", ".join(printable(f"{name} {version}") for name, version in packages.items())
    if isinstance(manifest.get("platform"), str):
        yield "platform", printable(manifest["platform"])
    executor = manifest.get("executor")
    if isinstance(executor, Mapping):
        words = [executor["name"], executor["torch_device"], executor["precision"]]
        workers = executor.get("workers", 1)
        yield "training", f"{', '.join(words)}, {workers} worker{'s' if workers != 1 else ''}"
        if executor.get("processor"):
            yield "processor", executor["processor"]
    if manifest.get("numeric_family"):
        yield "arithmetic", manifest["numeric_family"]
    if manifest.get("real_seconds"):
        yield "real time", duration(manifest["real_seconds"])
    if manifest.get("peak_memory_bytes"):
        yield "peak memory", size(manifest["peak_memory_bytes"])
