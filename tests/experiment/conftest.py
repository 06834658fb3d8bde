"""The output of a notebook's cell, for tests of what is shown there."""

from __future__ import annotations

import pytest
from notebook_cells import Screen

from fedsim.experiment.progress import notebook


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    made = Screen()
    monkeypatch.setattr(notebook, "display", made.display)
    return made
