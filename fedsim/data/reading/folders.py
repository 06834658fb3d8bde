"""What is in a folder, by name; hidden files, which archives of some systems leave behind, are passed over."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path

from fedsim.errors import UserError
from fedsim.files import shown

__all__ = ["matching"]


def matching(folder: Path, pattern: str = "*") -> list[Path]:
    """Everything in *folder* whose name is like *pattern*, ``*.wav``, in the order of names; case counts.

    Raises `UserError` when the folder cannot be read.
    """
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise UserError(f"{shown(folder)}: cannot be read as a folder ({error.strerror or error})") from error
    return [folder / name for name in sorted(names) if not name.startswith(".") and fnmatch.fnmatchcase(name, pattern)]
