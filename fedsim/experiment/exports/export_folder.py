"""A folder that is there as a whole or not at all, and that replaces only what an export has left.

It is filled beside its place, under another name, and then renamed. ``fedsim_export.json`` in it is its mark, with the
digest of each file: a folder with anything else in it, or with a file that has changed, is somebody else's.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fedsim.errors import UserError
from fedsim.files import shown, why_no_folder

__all__ = ["MARK", "check_place", "filled_folder"]

MARK = "fedsim_export.json"
_FORMAT = 1
_ELSEWHERE = "choose another folder with --out"


def check_place(place: Path) -> None:
    """Raise `UserError` when an export cannot go to *place*, or when what is there is not all of an export."""
    if problem := why_no_folder(place) or why_no_folder(place.parent):
        raise UserError(f"{problem}; {_ELSEWHERE}")
    if Path(os.path.realpath(place)) in [here := Path.cwd(), *here.parents]:
        raise UserError(f"{shown(place)} is the folder in which you are, and an export replaces a folder; {_ELSEWHERE}")
    if place.exists() and (stranger := _stranger(place)):
        raise UserError(f"{shown(place)} {stranger}; {_ELSEWHERE}")


@contextmanager
def filled_folder(place: Path, about: Mapping[str, Any]) -> Iterator[Path]:
    """An empty folder to be filled in a ``with`` block, at whose end it goes to *place*, with a mark that says *about*.

    When the block raises, all stays as it was. Raises `UserError` as `check_place` does.
    """
    check_place(place)
    place = Path(os.path.realpath(place))
    parents = [parent for parent in place.parents if not parent.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        _sweep(place)
        with _scratch_beside(place) as scratch:
            yield scratch
            mark = {"format": _FORMAT, **about, "files": _digests(scratch)}
            (scratch / MARK).write_text(json.dumps(mark, indent=2) + "\n", "utf-8")
            check_place(place)
            _replace(place, scratch)
    except BaseException:
        for parent in parents:
            with suppress(OSError):  # somebody else has put something in it
                parent.rmdir()
        raise


@contextmanager
def _scratch_beside(place: Path) -> Iterator[Path]:
    """An empty folder that is removed unless it gets another name; it is locked for as long as this process lives."""
    scratch = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    scratch.mkdir()
    held = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield scratch
    finally:
        os.close(held)
        shutil.rmtree(scratch, ignore_errors=True)


def _replace(place: Path, scratch: Path) -> None:
    if not place.exists():
        scratch.rename(place)
        return
    old = place.with_name(f".{place.name}.{os.getpid()}.old.tmp")
    place.rename(old)
    try:
        scratch.rename(place)
    except BaseException:
        old.rename(place)
        raise
    shutil.rmtree(old)


def _sweep(place: Path) -> None:
    """Remove what killed exports to *place* have left beside it; the one that was there before them goes back."""
    scratch = re.compile(rf"\.{re.escape(place.name)}\.[0-9]+(?P<old>\.old)?\.tmp")
    for entry in list(os.scandir(place.parent)):
        left = scratch.fullmatch(entry.name)
        if left is None or not entry.is_dir(follow_symlinks=False) or _is_in_use(entry.path):
            continue
        if left["old"] and not place.exists():
            os.rename(entry.path, place)
        else:
            shutil.rmtree(entry.path)


def _is_in_use(folder: str) -> bool:
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(held)
    return False


def _stranger(folder: Path) -> str | None:
    """What in *folder* no export has left, or has left otherwise; None when there is nothing."""
    there = _digests(folder)
    if not there:
        return None
    try:
        mark = json.loads((folder / MARK).read_text("utf-8"))
        files = {**mark["files"], MARK: there[MARK]}
        is_ours = mark["format"] == _FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        return f"is not empty and is no export (it has {shown(Path(min(there)))})"
    for name, digest in there.items():
        if name not in files:
            return f"has a file that the export has not written: {shown(Path(name))}"
        if files[name] != digest:
            return f"has a file that has changed since the export: {shown(Path(name))}"
    return None


def _digests(folder: Path) -> dict[str, str]:
    """A digest of each file in *folder*, however deep, by its path; what is no regular file has none that could be."""
    found = {}
    for way, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(way, name))]
        for name in [*files, *links]:
            path = Path(way, name)
            found[str(path.relative_to(folder))] = _digest(path)
    return dict(sorted(found.items()))


def _digest(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
