"""Where a result comes from: versions, seeds, platform, arithmetic; known before anything is computed."""

from __future__ import annotations

import os
import platform
import resource
import sys
import uuid
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from fedsim.errors import UserError
from fedsim.experiment.learners import Host
from fedsim.experiment.run_folder import RunFolder
from fedsim.models.table import ModelTable
from fedsim.scenario.scalars import printable, show
from fedsim.scenario.schema import Scenario

__all__ = ["new_manifest", "peak_memory_bytes"]

PACKAGES = ("torch", "numpy", "simpy", "networkx", "scikit-learn")


def new_manifest(scenario: Scenario, table: ModelTable, host: Host, store: Path, folder: RunFolder) -> dict[str, Any]:
    """The manifest of a run that begins, or that goes on: it keeps its identity and the time spent so far.

    Raises `UserError` when the run was begun with another arithmetic.
    """
    before: Mapping[str, Any] = folder.manifest
    if before and (begun := before.get("numeric_family")) != host.numeric_family:
        raise UserError(
            f"the run in {printable(str(folder.path))} was begun with the arithmetic {show(begun)} and would go on "
            f"with {host.numeric_family!r}; numbers would differ, so choose another folder with --out"
        )
    return {
        "scenario": scenario.name,
        "status": "running",
        "run": before.get("run", uuid.uuid4().hex),
        "fedsim": metadata.version("fedsim-industrial"),
        "seeds": list(scenario.seeds),
        "model": {"parameters": table.parameters(), "bytes": table.bytes()},
        "store": os.path.relpath(store, folder.path),
        "numeric_family": host.numeric_family,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "real_seconds": before.get("real_seconds", 0.0),
        "peak_memory_bytes": before.get("peak_memory_bytes", 0),
        "runs": [],
    }


def peak_memory_bytes() -> int:
    """Most memory that this process has had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
