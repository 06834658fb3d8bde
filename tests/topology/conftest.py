"""Tests that name files by short paths work in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_topologies import Refusal


@pytest.fixture
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(folder_of_its_own: Path, capsys: pytest.CaptureFixture[str]) -> Refusal:
    return Refusal(folder_of_its_own, capsys)
