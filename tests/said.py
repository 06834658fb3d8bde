"""What a command says, beside what it should say."""

from __future__ import annotations

import re


def assert_said(message: str, said: str) -> None:
    """Three dots in *message* stand for anything on that line."""
    pattern = re.escape(message).replace(re.escape("..."), "[^\n]*")
    assert re.fullmatch(pattern, said), f"said:     {said}expected: {message}"
