"""What a folder is that is no run's, and what to give in its place."""

from __future__ import annotations

import json
import os
from pathlib import Path

from fedsim.errors import UserError
from fedsim.files import read_own_file, shown
from fedsim.scenario.scalars import printable

__all__ = ["what_it_is"]


def what_it_is(folder: Path) -> str:
    """A sentence about a *folder* without the manifest of a run."""
    if os.path.lexists(folder / "sweep.json"):
        keys = f"the column point of {shown(folder / 'sweep.csv')} has each KEY"
        return (
            f"{shown(folder)} is the folder of a sweep; give one of its points, {shown(folder / 'points')}/KEY ({keys})"
        )
    if os.path.lexists(folder / "advice.json"):
        search = f"{shown(folder)} is the folder of a search (fedsim advise) with its table in advice.csv"
        return f"{search}; {_run_of_search(folder)}"
    return f"{shown(folder)} is no run folder: it has no manifest.json"


def _run_of_search(folder: Path) -> str:
    """What to give in place of the *folder* of a search: the run of what it has found."""
    if made := sorted(folder.glob("run-*/manifest.json")):
        return f"give the run of what it has found, {shown(made[0].parent)}"
    try:
        answer = json.loads(read_own_file(folder / "advice.json") or b"")
    except (UserError, ValueError, RecursionError):
        answer = None
    command = answer.get("command") if isinstance(answer, dict) else None
    if isinstance(command, str):
        return f"give the run that this makes: {printable(command)}"
    return "give the folder of a run"
