"""Where files of data are found: beside the scenario, or in the folder that FEDSIM_DATA names."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from fedsim.errors import UserError
from fedsim.files import beside, shown

__all__ = ["VARIABLE", "Missing", "SourcePath", "locate", "matching"]

VARIABLE = "FEDSIM_DATA"


class Missing(UserError):
    """A source, or a part of it, is not there; whoever knows where people get it says so (`SampledDataset.origin`)."""


def _beside_the_scenario(path: str, info: ValidationInfo) -> str:
    """An absolute path when *path* is there, seen from the scenario; else *path* as it was written.

    The validation's context, if there is one, is the document that is read; its ``source`` is its own path.
    """
    found = beside(info.context, path)
    return str(found) if found.exists() else path


SourcePath = Annotated[str, AfterValidator(_beside_the_scenario), Field(validate_default=True)]
"""A file or folder of data, relative to the scenario or to the folder that the variable FEDSIM_DATA names."""


def locate(path: str, *, what: str) -> Path:
    """Where *path*, a `SourcePath`, is now; *what* says for messages what should be there.

    Raises `Missing` when it is nowhere.
    """
    folder = os.environ.get(VARIABLE)
    found = Path(folder, path) if folder else Path(path)  # an absolute path stays what it is
    if found.exists():
        return found
    if Path(path).is_absolute():
        looked = f"{path}: is not there"
    elif folder and not Path(folder).is_dir():
        looked = f"{path}: is not beside the scenario, and {VARIABLE} names {folder}, which is no folder"
    elif folder:
        looked = f"{path}: is neither beside the scenario nor in {folder}, which {VARIABLE} names"
    else:
        looked = f"{path}: is not beside the scenario, and {VARIABLE}, the folder to look in next, is not set"
    raise Missing(f"{looked}; {what}")


def matching(folder: Path, pattern: str = "*") -> list[Path]:
    """Everything in *folder* whose name is like *pattern*, ``*.wav``, in the order of names; case counts.

    Hidden files, which archives of some systems leave behind, are passed over. Raises `UserError` when the
    folder cannot be read.
    """
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise UserError(f"{shown(folder)}: cannot be read as a folder ({error.strerror or error})") from error
    return [folder / name for name in sorted(names) if not name.startswith(".") and fnmatch.fnmatchcase(name, pattern)]
