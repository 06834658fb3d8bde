"""Every notebook runs from top to bottom, and is committed with outputs that show no error."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SEED_1 = '["seeds=[1]"]'


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_committed_with_outputs(path: Path) -> None:
    cells = code_cells(path)
    assert all(cell.execution_count for cell in cells)
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_it_imports_is_there(path: Path) -> None:
    cells = [cell.source for cell in code_cells(path)]
    statements = ast.walk(ast.parse("\n".join(cells)))
    imports = [ast.unparse(one) for one in statements if isinstance(one, (ast.Import, ast.ImportFrom))]
    assert "import fedsim" in imports
    exec("\n".join(imports), {})


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_its_outputs_have_no_warning(path: Path) -> None:
    outputs = [output for cell in code_cells(path) for output in cell.outputs]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs_from_top_to_bottom(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel of its own, in the notebook's folder; each cell shows the kinds of outputs that are committed."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    shown = [kinds(cell) for cell in notebook.cells]
    executed = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert [kinds(cell) for cell in executed.cells] == shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "smaller"),
    [
        pytest.param("first_run", {SEED_1: "['seeds=[1]', 'stop.rounds=2']"}, marks=pytest.mark.long),
        (
            "bearing_faults_night_shift",
            {SEED_1: "['seeds=[1]', 'stop.rounds=2', 'topology.devices_per_factory=4', 'data.unseen_clients=2']"},
        ),
        ("your_own_protocol", {"{rounds: 20}": "{rounds: 2}", "[1, 2, 3]": "[1]"}),
        ("your_own_data_and_model", {"{rounds: 30}": "{rounds: 5}"}),
    ],
)
def test_it_runs_with_fewer_rounds(name: str, smaller: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells one after the other, without the seconds that a kernel takes."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    (path,) = (path for path in NOTEBOOKS if path.stem == name)
    monkeypatch.chdir(path.parent)
    cells = [cell.source for cell in code_cells(path)]
    for whole in smaller:
        assert sum(cell.count(whole) for cell in cells) == 1
    names: dict[str, Any] = {}
    for cell in cells:
        for whole, part in smaller.items():
            cell = cell.replace(whole, part)
        exec(cell, names)
    names["plt"].close("all")
    assert "fedavg" in str(names["table"])


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def kinds(cell: nbformat.NotebookNode) -> set[tuple[str, ...]]:
    """Of a cell's outputs: printed, shown or returned, and as what."""
    return {(output.output_type, *sorted(output.get("data", {}))) for output in cell.get("outputs", [])}
