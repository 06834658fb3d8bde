"""Files that installed packages bring with them, found without importing the package: that may take a second."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

__all__ = ["packaged_file"]


def packaged_file(package: str, path: str) -> Path | None:
    """Where *package*, one without a package above it, keeps the file *path*; None where it is not installed.

    Whether that file is there is not looked at. No code of the package is run.
    """
    found = find_spec(package)
    folder = next(iter(found.submodule_search_locations or ()), None) if found else None
    return None if folder is None else Path(folder, path)
