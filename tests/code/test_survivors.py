"""The list of mutants that no test sees: each stands there once, in a function that there is, and has a verdict."""

from __future__ import annotations

import ast
import csv
import functools
from pathlib import Path

ROOT = Path(__file__).parents[2]


@functools.cache
def names_in(module: str) -> set[str]:
    """Of its classes, functions and methods."""
    path = ROOT / module.replace(".", "/")
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def test_each_survivor_has_a_place_and_a_verdict() -> None:
    with (ROOT / "tests/mutants/survivors.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["module", "function", "text", "instead", "verdict", "why"]
    assert len({tuple(row[:4]) for row in rows}) == len(rows)
    for module, function, text, _, verdict, why in rows:
        assert set(function.split(".")) <= names_in(module), f"{module} has no {function}"
        assert verdict in ("equivalent", "accepted"), (module, function, text)
        assert why, (module, function, text)
