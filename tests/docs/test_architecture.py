"""What docs/architecture.md names is there."""

from __future__ import annotations

import re

import pytest
from pages import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"(?:fedsim|tests)/[\w/]+(?:\.py)?", PAGE)))
PACKAGES = sorted(path.name for path in (ROOT / "fedsim").iterdir() if (path / "__init__.py").is_file())


@pytest.mark.parametrize("path", PATHS)
def test_each_path_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_each_package_has_its_line() -> None:
    (table,) = re.findall(r"^\| package \|.*?\n\n", PAGE, re.M | re.S)
    cells = [line.split("|")[1] for line in table.strip().splitlines()[2:]]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == PACKAGES
