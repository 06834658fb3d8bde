"""What took long to read or to make is kept, so that the next run has it at once.

An entry is a folder of plain ``.npy`` files and one JSON file; its name is a digest of the source's content, the
loader's version and all options. It is written beside its place and renamed, so it is there as a whole or not at all.
The cache may be deleted at any time. Left out: a bound on its size.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.encoding import ENCODINGS
from fedsim.data.raw_dataset import RawDataset
from fedsim.data.target import Target
from fedsim.errors import UserError
from fedsim.files import shown
from fedsim.quick import check_bytes, check_work

__all__ = ["VARIABLE", "cached", "folder"]

VARIABLE = "FEDSIM_CACHE"
LAYOUT = 2
MOST_HASHED_BYTES = 1_000_000_000
MOST_FILES_IN_SECONDS = 300_000
MOST_LEVELS = 16
ARRAYS = ("x", "y", "owner", "test", "series")
LISTS = ("class_names", "owner_names", "fleets", "remarks", "levels")
FACTS = ("classes", "sample_bytes", "sound_class", "owners_are_clients", "overlap", "whole_series", *LISTS)


def folder() -> Path | None:
    """Where entries are kept: what FEDSIM_CACHE names, else ``fedsim`` in the user's cache folder, if there is one."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedsim"
    except RuntimeError:  # no HOME, and a user whom the system does not know, as in a container
        return None


def cached(
    name: str, version: int, sources: Sequence[Path], options: Mapping[str, Any], make: Callable[[], RawDataset]
) -> RawDataset:
    """What *make* returns, kept under *name*, its *version*, the content of *sources* and *options* (JSON-able).

    A file counts by its content; a folder by the names, sizes and times of all files below it. An entry that is
    damaged is made anew. Where nothing can be written, nothing is kept, and the raw data set's remarks say so. Raises
    `UserError` for sources that cannot be read.
    """
    identity = json.dumps([LAYOUT, name, version, options], sort_keys=True, allow_nan=False)
    key = hashlib.blake2b(identity.encode(), digest_size=16)
    for source in sources:
        try:
            _add_source(key, source)
        except OSError as error:
            raise UserError(f"{shown(source)}: cannot be read ({error.strerror or error})") from error
    home = folder()
    if home is None:
        why = f"not kept in a cache: this user has no home folder (HOME); {VARIABLE} may name a folder"
        raw = make()
        return replace(raw, remarks=(*raw.remarks, why))
    place = home / f"{name}-{key.hexdigest()}"
    check_bytes(_bytes(place), " and ".join(map(shown, sources)))
    found = _read(place)
    if found is not None:
        return found
    raw = make()
    try:
        _write(place, raw)
    except OSError as error:
        why = f"not kept in {home}, the cache: {error.strerror or error}; {VARIABLE} may name another folder"
        return replace(raw, remarks=(*raw.remarks, why))
    return raw


def _add_source(key: hashlib.blake2b, source: Path) -> None:
    if source.is_dir():
        for number, (name, state) in enumerate(_files(source)):
            check_work(number, MOST_FILES_IN_SECONDS, "files", shown(source))
            facts = f"\0{state.st_size}\0{state.st_mtime_ns}\0{state.st_ctime_ns}\0"
            key.update(os.fsencode(name) + facts.encode())
    elif source.is_file() and source.stat().st_size <= MOST_HASHED_BYTES:
        with source.open("rb") as file:
            key.update(hashlib.file_digest(file, "blake2b").digest())
    else:
        state = source.stat()
        key.update(f"{state.st_size}\0{state.st_mtime_ns}\0{state.st_ctime_ns}\0".encode())


def _files(folder: str | Path, above: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """(path from the first folder, state) of all files below *folder*, in order; links are followed."""
    if above.count("/") > MOST_LEVELS:
        raise UserError(f"{shown(Path(folder))}: is more than {MOST_LEVELS} folders deep; is a link going in a circle?")
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                yield from _files(entry.path, f"{above}{entry.name}/")
            elif entry.is_file():
                yield f"{above}{entry.name}", entry.stat()


def _write(place: Path, raw: RawDataset) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir()
        digests = {}
        for name in ARRAYS:
            array = getattr(raw, name)
            if array is not None:
                digests[name] = _digest(array)
                np.save(scratch / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
        encoding = {"kind": type(raw.encoding).__name__, **vars(raw.encoding)}
        facts = {name: getattr(raw, name) for name in FACTS} | {"encoding": encoding, "digests": digests}
        facts["target"] = None if raw.target is None else asdict(raw.target)
        (scratch / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
        if place.exists():  # damaged, or somebody else was faster
            shutil.rmtree(place, ignore_errors=True)
        scratch.rename(place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _bytes(place: Path) -> int:
    """Of the arrays that are kept there; 0 where there are none, or none that can be read, as `_read` will find."""
    try:
        return sum(path.stat().st_size for path in (place / f"{name}.npy" for name in ARRAYS) if path.exists())
    except OSError:
        return 0


def _read(place: Path) -> RawDataset | None:
    """The entry, or None when there is none, or one that is not what was written."""
    try:
        facts = json.loads((place / "facts.json").read_bytes())
        digests, encoding, target = (facts.pop(name) for name in ("digests", "encoding", "target"))
        arrays = {name: np.load(place / f"{name}.npy", allow_pickle=False) for name in digests}
        if any(_digest(arrays[name]) != digest for name, digest in digests.items()):
            return None
        kind = {known.__name__: known for known in ENCODINGS}[encoding.pop("kind")]
        lists = {name: tuple(facts[name]) for name in LISTS}
        target = None if target is None else Target(**target)
        return RawDataset(**arrays, **{**facts, **lists}, target=target, encoding=kind(**encoding))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None


def _digest(array: NDArray[Any]) -> str:
    content = hashlib.blake2b(f"{array.dtype.str} {array.shape}".encode(), digest_size=16)
    content.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return content.hexdigest()
