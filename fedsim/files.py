"""Files that are never half-written."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["why_no_folder", "write_atomically"]


def write_atomically(path: Path, content: bytes) -> None:
    """Replace *path* by *content*: readers see the old file or the new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with scratch.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def why_no_folder(folder: Path) -> str | None:
    """Why nothing can be written into *folder*, as far as one can tell without doing it; None when it can.

    It need not be there yet.
    """
    try:
        for part in (folder, *folder.parents):
            if part.exists() or part.is_symlink():
                if not part.is_dir():
                    return f"{part} is not a folder"
                return None if os.access(part, os.W_OK | os.X_OK) else f"{part} cannot be written to"
    except (OSError, ValueError) as error:  # the latter: a null character
        return f"{folder} is no name of a folder ({getattr(error, 'strerror', None) or error})"
    return None
