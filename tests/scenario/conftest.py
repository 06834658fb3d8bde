"""Commands in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile import Refusals


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusals:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "10000")  # argparse folds its usage otherwise
    return Refusals(tmp_path, capsys)
