"""What tests of code from outside begin with."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts_from_outside import PARTS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the user's file, to which scenarios and runs come."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PARTS)
    return tmp_path
