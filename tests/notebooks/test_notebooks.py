"""Every notebook runs from top to bottom, and is committed with outputs that show no error."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_committed_with_outputs(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_it_imports_is_there(path: Path) -> None:
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    statements = ast.walk(ast.parse("\n".join(cells)))
    imports = [ast.unparse(one) for one in statements if isinstance(one, (ast.Import, ast.ImportFrom))]
    assert "import fedsim" in imports
    exec("\n".join(imports), {})


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs_from_top_to_bottom(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    execute(path, nbformat.read(path, as_version=4))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "smaller"),
    [
        ("first_run", ["stop.rounds=2"]),
        ("bearing_faults_night_shift", ["stop.rounds=2", "topology.devices_per_factory=4", "data.unseen_clients=2"]),
    ],
)
def test_it_runs_with_fewer_rounds(name: str, smaller: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells one after the other, without the seconds that a kernel takes."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    (path,) = (path for path in NOTEBOOKS if path.stem == name)
    monkeypatch.chdir(path.parent)
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert sum('["seeds=[1]"]' in cell for cell in cells) == 1
    names: dict[str, Any] = {}
    for cell in cells:
        exec(cell.replace('["seeds=[1]"]', repr(["seeds=[1]", *smaller])), names)
    names["plt"].close("all")
    assert "fedavg" in str(names["table"])


def execute(path: Path, notebook: nbformat.NotebookNode) -> None:
    """In a kernel of its own, in the notebook's folder; any error in a cell fails the test."""
    executed = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    ran = next(cell for cell in executed.cells if cell.cell_type == "code" and "fedsim.run(" in cell.source)
    assert "fedavg" in ran.outputs[-1]["data"]["text/plain"]
