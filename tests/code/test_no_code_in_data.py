"""What is read is data: no file decides what is executed, but for the code that a scenario names to be run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fedsim.cli import main
from fedsim.experiment.results import load_results

PACKAGE = Path(__file__).parents[2] / "fedsim"
RUNS_CODE = {
    "eval": set(),
    "exec": {"imports.py"},  # a user's own code, by its import path
    "compile": {"imports.py"},
    "__import__": set(),
}
LOADS_OBJECTS = {
    "pickle": {"learning/executors/worker.py", "learning/executors/workers.py"},  # pipes between a run's own processes
    "marshal": set(),
    "shelve": set(),
    "dill": set(),
    "cloudpickle": set(),
    "joblib": set(),
}
OPENS_PICKLES = {("torch", "load"), ("yaml", "load"), ("yaml", "unsafe_load"), ("np", "load"), ("numpy", "load")}
PLANT = """
name: plant
stop: {rounds: 1}
topology: {name: star, devices: 3}
network:
  cell: {radio: {name: fixed, profile: lte_m_m1}}
  link: {rate_bps: 100.0e+6}
devices: {classes: {sensor: {compute: {name: flops, flops_per_s: 100.0e+6}}}}
data: {name: python, path: "my_data.py:clients"}
model: {name: softmax}
training: {learning_rate: 0.1, batch_size: 10}
learn: false
protocols: [{name: fedavg, clients: 2}]
"""
CODE = """
from pathlib import Path
import numpy as np
with Path(__file__).with_name("executed").open("a") as file:
    file.write("x")
def clients(number, rng):
    return {"x": rng.normal(size=(number * 20, 4)).astype("float32"), "y": np.arange(number * 20) % 3}
"""


@functools.cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Every call and import of the package, with its file."""
    return [
        (path.relative_to(PACKAGE).as_posix(), node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call | ast.Import | ast.ImportFrom)
    ]


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path, node in nodes():
        if isinstance(node, ast.Call):
            yield path, node


@pytest.mark.parametrize("function", RUNS_CODE)
def test_only_code_that_a_scenario_names_is_executed(function: str) -> None:
    users = {path for path, call in calls() if isinstance(call.func, ast.Name) and call.func.id == function}
    assert users == RUNS_CODE[function]


@pytest.mark.parametrize("module", LOADS_OBJECTS)
def test_no_module_reads_objects_but_workers_from_their_own_pipes(module: str) -> None:
    users = set()
    for path, node in nodes():
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.split(".")[0] == module for name in names):
            users.add(path)
    assert users == LOADS_OBJECTS[module]


def test_arrays_are_loaded_without_pickles() -> None:
    loads = [
        (path, call)
        for path, call in calls()
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and (call.func.value.id, call.func.attr) in OPENS_PICKLES
    ]
    assert loads
    for path, call in loads:
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert keywords.get("allow_pickle") == "False", f"{path}:{call.lineno}"


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run whose scenario names code, which leaves a trace each time that it is executed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.yaml").write_text(PLANT)
    (tmp_path / "my_data.py").write_text(CODE)
    assert main(["run", "plant.yaml", "--out", "run", "--quiet"]) == 0
    (tmp_path / "executed").unlink()
    (tmp_path / "my_data.py").write_text(f"{CODE}\n# changed, so that it would be executed again\n")
    return tmp_path


def test_reading_a_run_folder_executes_nothing(plant: Path) -> None:
    for command in (
        ["run", "plant.yaml", "--out", "run"],
        ["compare", "run"],
        ["plot", "run"],
        ["draw", "plant.yaml", "--run", "run", "--out", "network.png"],
    ):
        assert main(command) == 0
    assert len(load_results(plant / "run").rounds) == 1
    assert not (plant / "executed").exists()


@pytest.mark.parametrize("command", ["validate", "describe"])
def test_checking_a_scenario_executes_the_code_that_it_names(plant: Path, command: str) -> None:
    """The page on security says so; a change that spares it would be welcome there."""
    assert main([command, "plant.yaml"]) == 0
    assert (plant / "executed").exists()


def test_a_pickle_in_a_data_set_is_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (str(tmp_path / "executed"),)

    trap = np.empty(40, dtype=object)
    trap[:] = [Trap() for _ in trap]
    np.savez(tmp_path / "trap.npz", x=trap, y=np.arange(40) % 2)
    scenario = PLANT.replace('{name: python, path: "my_data.py:clients"}', "{name: arrays, path: trap.npz}")
    (tmp_path / "plant.yaml").write_text(scenario)
    assert main(["validate", str(tmp_path / "plant.yaml")]) == 2
    assert "trap.npz" in capsys.readouterr().err
    assert not (tmp_path / "executed").exists()
