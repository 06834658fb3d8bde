"""Where a result comes from: versions, seeds, platform, arithmetic; known before anything is computed."""

from __future__ import annotations

import os
import platform
import resource
import shlex
import sys
import uuid
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from fedsim import registry
from fedsim.errors import UserError
from fedsim.experiment.host import Host, numeric_family
from fedsim.experiment.results import Results
from fedsim.experiment.run_folder import RunFolder
from fedsim.files import shown
from fedsim.learning.executors.choice import PRECISIONS, TORCH_DEVICES
from fedsim.models.table import ModelTable
from fedsim.scenario.build import Materials
from fedsim.scenario.scalars import show
from fedsim.scenario.schema import Scenario

__all__ = ["model_size", "new_manifest", "peak_memory_bytes", "retimed_manifest", "take_peaks", "trainer_of"]

NO_RUN = "0" * 32
"""Of a manifest that does not tell."""
PACKAGES = ("torch", "numpy", "simpy", "networkx", "scikit-learn")


def new_manifest(
    scenario: Scenario, materials: Materials, host: Host, store: Path, folder: RunFolder
) -> dict[str, Any]:
    """The manifest of a run that begins, or that goes on: it keeps its identity and the time spent so far.

    Raises `UserError` when the run was begun with another arithmetic.
    """
    before: Mapping[str, Any] = folder.manifest
    begun = before.get("numeric_family")
    if before and begun != host.numeric_family:
        raise UserError(
            f"the run in {shown(folder.path)} was begun with the arithmetic {show(begun)} and would go on "
            f"with {host.numeric_family!r}; numbers would differ, so {_way_out(before)}"
        )
    learned = {"numeric_family": host.numeric_family, "executor": host.training and host.training.facts()}
    return _manifest(scenario, materials, store, folder, learned)


def retimed_manifest(
    scenario: Scenario, materials: Materials, original: Results, store: Path, folder: RunFolder
) -> dict[str, Any]:
    """The manifest of a run whose time is new, and whose models the *original* has trained, or the one behind it."""
    known = original.manifest
    trained = trainer_of(known)
    here = os.path.realpath(folder.path)  # the way out of a folder that a link leads to begins at that folder
    learned = {
        "store": os.path.relpath(store, here),
        "numeric_family": known["numeric_family"],
        "executor": known["executor"],
        "retimed_from": {
            "folder": os.path.relpath(os.path.realpath(original.folder), here),
            "run": trained.get("run", NO_RUN),
            "fedsim": trained.get("fedsim"),
            "packages": trained.get("packages"),
            "trace_hashes": {f"{row['protocol']}/{row['seed']}": row.get("trace_hash") for row in known["runs"]},
        },
    }
    return _manifest(scenario, materials, store, folder, learned)


def trainer_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a manifest says of the run that has trained: the run itself, or the one that it was re-timed from."""
    return manifest.get("retimed_from") or manifest


def _manifest(
    scenario: Scenario, materials: Materials, store: Path, folder: RunFolder, learned: Mapping[str, Any]
) -> dict[str, Any]:
    """With what *learned*; the rest is as it is here and now."""
    before: Mapping[str, Any] = folder.manifest
    own = materials.class_tables
    return {
        "scenario": scenario.name,
        "status": "running",
        "run": before.get("run", uuid.uuid4().hex),
        "fedsim": metadata.version("fedsim-industrial"),
        "seeds": list(scenario.seeds),
        "clients": len(materials.topology.sensors),
        "sample_shape": materials.dataset.sample_shape,
        "outputs": materials.dataset.outputs,
        "model": model_size(materials.table),
        "classes": materials.dataset.classes,
        **({"class_models": {name: model_size(table) for name, table in own.items()}} if own else {}),
        "store": os.path.relpath(store, folder.path),
        **learned,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "real_seconds": before.get("real_seconds", 0.0),
        "peak_memory_bytes": before.get("peak_memory_bytes", 0),
        "worker_peak_memory_bytes": before.get("worker_peak_memory_bytes"),
        "remarks": [],
        "runs": [],
    }


def model_size(table: ModelTable) -> dict[str, float]:
    """What a manifest says of a model."""
    return {"parameters": table.parameters(), "bytes": table.bytes()}


def _way_out(before: Mapping[str, Any]) -> str:
    """How to go on with the arithmetic that a run was begun with, where it is still to be had."""
    elsewhere = "choose another folder with --out"
    executor = before.get("executor")
    if executor is None or executor["name"] not in registry.all_names("executors"):
        return elsewhere
    from fedsim.learning.kernels.processor import instruction_set, why_no_kernels

    kind = registry.load("executors", executor["name"])
    ours, begun = numeric_family(kind, executor["torch_device"], executor["precision"]), before["numeric_family"]
    there, processor = executor.get("processor"), instruction_set()
    if ours != begun and there is not None and ours.replace(f"/{processor}/", f"/{there}/") == begun:
        now = f"{processor}, as {why}" if (why := why_no_kernels()) else processor
        return f"go on where the processor and the environment come to {there} (here: {now}), or {elsewhere}"
    if ours != begun:
        return elsewhere  # another torch, or an executor that has changed
    options = {f"--{key.replace('_', '-')}": executor[key] for key in ("torch_device", "precision")}
    usual = {"--torch-device": TORCH_DEVICES[0], "--precision": PRECISIONS[0]}
    words = ["--executor", executor["name"]]
    words += [word for option, value in options.items() if value != usual[option] for word in (option, value)]
    return f"go on with {shlex.join(words)}, or {elsewhere}"


def take_peaks(manifest: dict[str, Any]) -> None:
    """Note the most memory that this process, and the largest of the workers that have ended, have had so far."""
    manifest["peak_memory_bytes"] = max(manifest["peak_memory_bytes"], peak_memory_bytes())
    executor = manifest["executor"]
    if executor is not None and executor["workers"] > 1 and (peak := peak_memory_bytes(resource.RUSAGE_CHILDREN)):
        manifest["worker_peak_memory_bytes"] = max(manifest["worker_peak_memory_bytes"] or 0, peak)


def peak_memory_bytes(whose: int = resource.RUSAGE_SELF) -> int:
    """Most memory that this process has had resident; of its children, the most that one of those has that ended."""
    peak = resource.getrusage(whose).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
