"""What was compiled is kept on disk, so that the next run of the same code on the same kind of processor need not wait.

An entry is a file in the folder ``machine_code`` of fedsim's cache folder. It is executed later, so the folder and the
file must belong to the user, and nobody else may write there: otherwise nothing is read or kept. A digest finds damage,
and an entry under another name than its own; what is wrong is made anew. Results are the same with and without. Left
out: protection from whoever can write as this user.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fedsim.data.cache import VARIABLE, folder

__all__ = ["MOST_BYTES", "OFF", "kept"]

OFF = "FEDSIM_NO_CODE_CACHE"
"""A variable of the environment: set to anything, it says that nothing is read or kept."""
FOLDER = "machine_code"
MOST_BYTES = 64_000_000
"""Of all entries together; from then on those that were used longest ago are removed, down to half of it."""
LARGEST_ENTRY = MOST_BYTES // 4
_HEADER = b"fedsim machine code 1\n"
_DIGEST_BYTES = 32
_ENTRY = re.compile(r"[0-9a-f]{64}\.code(\.[0-9a-f]{16}\.tmp)?")
_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""Follows no link and waits for no pipe."""
_FOR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def kept(key: str, make: Callable[[], bytes]) -> bytes:
    """What *make* returns, or has returned in an earlier process for the same *key*, 64 hexadecimal digits.

    A folder or file that cannot be used, or is not only the user's own, is passed over without a word.
    """
    with _opened() as home:
        found = None if home is None else _read(home, key)
        if found is not None:
            return found
        made = make()
        if home is not None:
            with contextlib.suppress(OSError):  # such as a full disk
                _write(home, key, made)
        return made


@contextmanager
def _opened() -> Iterator[int | None]:
    """The folder, as a descriptor: should its path lead elsewhere later, the files are still those in this one."""
    home = _own_folder()
    try:
        yield home
    finally:
        if home is not None:
            os.close(home)


def _own_folder() -> int | None:
    """Opens the folder, made if need be; None where there is none, or one that is not the user's alone."""
    named = any(os.environ.get(name) for name in (VARIABLE, "XDG_CACHE_HOME", "HOME"))
    above = folder() if named and not os.environ.get(OFF) else None
    if above is None or not above.is_absolute():  # else code could lie in any folder that somebody runs in
        return None
    try:
        above.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (above / FOLDER).mkdir(mode=0o700)
        home = os.open(above / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (OSError, ValueError):  # the latter: a null character
        return None
    if _is_ours(os.fstat(home)):
        return home
    os.close(home)
    return None


def _is_ours(state: os.stat_result) -> bool:
    return state.st_uid == os.geteuid() and not state.st_mode & _FOR_OTHERS


def _read(home: int, key: str) -> bytes | None:
    """The entry; None where there is none, or one that is not what was written, or not by this user."""
    try:
        entry = os.open(_name(key), _TO_READ, dir_fd=home)
    except OSError:
        return None
    with open(entry, "rb") as file:
        state = os.fstat(entry)
        if not (stat.S_ISREG(state.st_mode) and _is_ours(state) and state.st_size <= LARGEST_ENTRY):
            return None
        try:
            content = file.read(LARGEST_ENTRY)
        except OSError:
            return None
        with contextlib.suppress(OSError):  # on a disk that cannot be written, nothing is ever removed
            os.utime(entry)  # it has been used
    begin = len(_HEADER) + _DIGEST_BYTES
    payload = content[begin:]
    return payload if content[:begin] == _HEADER + _digest(key, payload) else None


def _write(home: int, key: str, payload: bytes) -> None:
    """Under another name first, so readers see a whole entry or none, also with several writers."""
    content = _HEADER + _digest(key, payload) + payload
    if len(content) > LARGEST_ENTRY:
        return
    _make_room(home, len(content))
    scratch = f"{_name(key)}.{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with open(os.open(scratch, flags, 0o600, dir_fd=home), "wb") as file:
            file.write(content)
        os.replace(scratch, _name(key), src_dir_fd=home, dst_dir_fd=home)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(scratch, dir_fd=home)
        raise


def _make_room(home: int, more_bytes: int) -> None:
    """Remove what was used longest ago, when *more_bytes* are too many; what has no name or header of ours stays."""
    with os.scandir(home) as entries:
        ours = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries if _ENTRY.fullmatch(entry.name)]
    used = more_bytes + sum(state.st_size for _, state in ours)
    if used <= MOST_BYTES:
        return
    for name, state in sorted(ours, key=lambda one: one[1].st_mtime_ns):
        if used <= MOST_BYTES // 2:
            return
        with contextlib.suppress(OSError):  # a link, or somebody else was faster
            if _has_header(home, name):
                os.unlink(name, dir_fd=home)
                used -= state.st_size


def _has_header(home: int, name: str) -> bool:
    with open(os.open(name, _TO_READ, dir_fd=home), "rb") as file:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read(len(_HEADER)) == _HEADER


def _name(key: str) -> str:
    return f"{key}.code"


def _digest(key: str, payload: bytes) -> bytes:
    return hashlib.sha256(key.encode() + payload).digest()
