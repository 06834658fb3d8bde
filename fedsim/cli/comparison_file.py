"""The file of ``fedsim compare --csv``: written as a whole, and only in the place of an older one."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fedsim.errors import UserError
from fedsim.files import own_file_opener, shown, why_no_folder, why_not_own_file

__all__ = ["check_place"]

_HEADER = re.compile(rb"\A(?:[^\r\n]*,)?run,protocol,accounting,n,")
"""How a comparison begins; the keys of a sweep come first."""
_HEAD_BYTES = 100_000
_OF_A_RUN = ("scenario.yaml", "summary.csv")
"""What a run folder has beside its ``manifest.json``, one of them at least."""


def check_place(path: Path) -> None:
    """Raise `UserError` unless a comparison can go to *path*: what is there now is nothing, or a comparison.

    Nor can it go into a run folder, whose files are those of the run.
    """
    if problem := _why_not(path):
        raise UserError(f"--csv: cannot write {shown(path)}: {problem}")


def _why_not(path: Path) -> str | None:
    if path.is_dir():
        return "it is a folder"
    if problem := why_no_folder(path.parent):
        return problem
    if not path.parent.is_dir():
        return "there is no such folder"
    if kind := why_not_own_file(path):
        return f"it is {kind}"
    if folder := _run_around(path):
        return f"it is inside the run folder {shown(folder)}; choose another place"
    if path.exists() and not _HEADER.match(_beginning(path)):
        return "it is there, and is no comparison of fedsim; choose another place"
    return None


def _run_around(path: Path) -> Path | None:
    """The run folder that *path* is in, however deep."""
    for folder in Path(os.path.realpath(path)).parents:
        if (folder / "manifest.json").is_file() and any((folder / name).is_file() for name in _OF_A_RUN):
            return folder
    return None


def _beginning(path: Path) -> bytes:
    with open(path, "rb", opener=own_file_opener) as file:
        return file.read(_HEAD_BYTES)
