"""The command that goes on with an unfinished run, as a line for a shell: all that it needs is in the run folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedsim.files import is_inside
from fedsim.learning.executors.choice import AUTO, PRECISIONS, TORCH_DEVICES

__all__ = ["command_to_resume"]

_USUAL = {"asked": AUTO, "torch_device": TORCH_DEVICES[0], "precision": PRECISIONS[0]}
_OPTIONS = {"asked": "--executor", "torch_device": "--torch-device", "precision": "--precision"}


def command_to_resume(folder: Path, manifest: Mapping[str, Any]) -> str:
    """``fedsim run`` of what is in *folder*, of which this is the *manifest*, with the options that it was begun with.

    The store is named where it is outside of the folder, as that of a sweep's point is: the run asks for it.
    """
    words = ["fedsim", "run", str(folder / "scenario.yaml"), "--out", str(folder), "--resume"]
    store = folder / str(manifest.get("store", "store"))
    if not is_inside(store, folder):
        tidy = Path(os.path.normpath(store))  # without ..; where a link is on the way that may be another place
        words += ["--store", str(tidy if os.path.realpath(tidy) == os.path.realpath(store) else store)]
    trained = manifest.get("executor") or {}
    for fact, usual in _USUAL.items():
        if isinstance(value := trained.get(fact, usual), str) and value != usual:
            words += [_OPTIONS[fact], value]
    return shlex.join(words)
