from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares a text with the one that was accepted as ``NAME.trace``; ``FEDSIM_GOLDEN=accept`` accepts today's."""

    def compare(name: str, text: str) -> None:
        path = FOLDER / f"{name}.trace"
        if os.environ.get("FEDSIM_GOLDEN") == "accept":
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing; write it with: make golden-accept"
        assert text == path.read_text(encoding="utf-8"), "the trace has changed; if that is meant: make golden-accept"

    return compare
