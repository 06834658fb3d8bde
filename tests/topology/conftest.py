"""Tests that name files by short paths work in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
