"""The folder of a store: what marks it, what in it is the store's own, and where damaged files go.

Nothing is written into a folder that is no store and not empty. Nothing is deleted but tensors that nobody needs and
what a kill has left half-written, both by their names.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import count
from pathlib import Path

from filelock import FileLock

from fedsim.errors import UserError
from fedsim.files import (
    read_own_file,
    scratch_of,
    shown,
    sweep_scratch,
    why_no_folder,
    why_not_own_file,
    write_atomically,
)
from fedsim.learning.stored_values import NAME

__all__ = ["ELSEWHERE", "WEIGHTS", "StoreFolder", "check_is_store", "check_store", "files_in"]

MARK, LOCK, DAMAGED = "store.json", "lock", "damaged"
CONTENT = {"format": "fedsim-store", "version": 2}
"""Of the mark."""
OWN_FILES = {
    "claims": re.compile(r"[0-9a-f]+\.lock"),
    "metrics": re.compile(r"[^/]+\.jsonl"),
    "ledger": re.compile(r"[^/]+\.jsonl"),
    "index": re.compile(r"[^/]+\.json"),
    "tensors": re.compile(rf"{NAME.pattern}\.safetensors"),
}
"""By folder: the names of the files in it that a store has written."""
WEIGHTS = re.compile(rf"tensors/{OWN_FILES['tensors'].pattern}")
"""Paths of tensors inside a store."""
ELSEWHERE = "choose another store with --store, or another folder with --out"
"""The way out where a folder is no store."""


def check_store(folder: Path) -> None:
    """Raise `UserError` when *folder*, which need not be there yet, cannot be a store. Nothing is written."""
    with suppress(OSError, ValueError):  # the latter: a null character
        _is_marked(folder)
    if problem := why_no_folder(folder):
        raise UserError(f"{problem}; choose another store with --store")


def check_is_store(folder: Path) -> None:
    """Raise `UserError` unless *folder* is a store of this version. Nothing is written."""
    try:
        mark = read_own_file(folder / MARK)
    except ValueError:  # a null character
        mark = None
    if mark is None:
        raise UserError(f"{shown(folder)}: {'is no store' if os.path.lexists(folder) else 'is not there'}")
    if not _is_ours(mark):
        raise UserError(f"{shown(folder / MARK)}: is not the mark of a store of this version of fedsim")


def files_in(store: Path, folder: str) -> list[Path]:
    """The store's own files in one of its folders, in the order of their names; none where there is no such folder."""
    own: Callable[[str], object] = OWN_FILES[folder].fullmatch
    with suppress(FileNotFoundError):
        return sorted(path for path in (store / folder).iterdir() if own(path.name))
    return []


def _is_marked(folder: Path) -> bool:
    """Whether *folder* is a store already; False when it is not there, or empty.

    Raises `UserError` when it is something else, or a store of another version, or when something else stands where a
    store has its folders; `OSError` when that cannot be seen.
    """
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return False
    mark = read_own_file(folder / MARK)  # after its neighbours, which are made later
    if mark is None:
        for name in sorted(names):
            if name != LOCK and scratch_of(name) != MARK:  # which a killed run may have left before it made the mark
                problem = f"is not empty and is no store (it has {shown(Path(name))})"
                raise UserError(f"{shown(folder)} {problem}; {ELSEWHERE}")
        return False
    if not _is_ours(mark):
        raise UserError(f"{shown(folder / MARK)}: is not the mark of a store of this version of fedsim; {ELSEWHERE}")
    for name in (*OWN_FILES, DAMAGED):
        _check_folder(folder / name)
    return True


def _is_ours(mark: bytes) -> bool:
    try:
        return bool(json.loads(mark) == CONTENT)
    except (ValueError, RecursionError):
        return False


def _check_folder(folder: Path) -> None:
    if folder.is_symlink() or (os.path.lexists(folder) and not folder.is_dir()):
        kind = why_not_own_file(folder) or "a file"
        raise UserError(f"{shown(folder)}: is {kind}, and a store keeps a folder there; {ELSEWHERE}")


class StoreFolder:
    """A folder that is a store: made one if it was empty, and swept of what killed runs have left half-written.

    Raises `UserError` as `check_store` does.
    """

    def __init__(self, path: Path) -> None:
        check_store(path)
        self.path = path
        self.lock = FileLock(path / LOCK)
        """Held by whoever writes tensors or an index, deletes, or puts something aside."""
        self.complete = True
        """Whether all is known that somebody may need. As long as it is not, nothing is deleted."""
        path.mkdir(parents=True, exist_ok=True)
        with self.lock:
            if not _is_marked(path):  # nobody else can make it one now
                write_atomically(path / MARK, f"{json.dumps(CONTENT)}\n".encode())
            sweep_scratch(path, MARK.__eq__)
            for name, own in OWN_FILES.items():
                (path / name).mkdir(exist_ok=True)
                sweep_scratch(path / name, own.fullmatch)

    def put_aside(self, path: Path) -> Path:
        """Move a damaged file to where it harms nobody and nobody deletes it; returns where that is."""
        with self.lock:
            place = self.place_aside(path.name)
            os.rename(path, place)
        return place

    def place_aside(self, name: str) -> Path:
        """A name that no damaged file has so far; the lock is held."""
        folder = self.path / DAMAGED
        folder.mkdir(exist_ok=True)
        return next(place for number in count(1) if not os.path.lexists(place := folder / f"{name}.{number}"))

    def delete_tensors(self, needed: Collection[str]) -> None:
        """Delete the tensors whose names are not among the *needed* ones; the lock is held."""
        if not self.complete:
            return
        tensors = self.path / "tensors"
        for entry in list(os.scandir(tensors)):
            own = OWN_FILES["tensors"].fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            if own and entry.name.removesuffix(".safetensors") not in needed:
                os.unlink(entry.path)
        sweep_scratch(tensors, OWN_FILES["tensors"].fullmatch)

    def files(self, folder: str) -> list[Path]:
        """The store's own files in one of its folders, in the order of their names."""
        return files_in(self.path, folder)
