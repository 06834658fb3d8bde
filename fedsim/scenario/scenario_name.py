"""What a scenario may be called; in a file of its own, so that a command that needs no more loads no more."""

from __future__ import annotations

import re

__all__ = ["NAME", "check_name"]

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
"""A name that can be that of a folder."""


def check_name(name: str) -> str:
    """A scenario's *name* as it is, which can be that of a folder; raises `ValueError` for any other."""
    if not re.fullmatch(NAME, name):
        near = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:80]
        raise ValueError(
            f"{name!r} must be letters (A to Z), digits, dots, dashes and underscores, at most 80, and begin with a "
            f"letter or digit: write {near or 'plant'}"
        )
    return name
