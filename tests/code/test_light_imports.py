"""A network study never waits for torch: importing fedsim, asking for help, all modules but the trainers stay light."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fedsim import registry

HEAVY = {"llvmlite", "matplotlib", "ortools", "pandas", "pymoo", "simpy", "sklearn", "torch"}
PACKAGE = Path(__file__).parents[2] / "fedsim"
PACKAGES = sorted(".".join(init.parent.relative_to(PACKAGE.parent).parts) for init in PACKAGE.rglob("__init__.py"))
TRAINERS = (
    "fedsim.learning.",
    "fedsim.models.parted",
    "fedsim.models.torch_layers",
    "fedsim.models.torch_module",
    "fedsim.models.user_head",
    "fedsim.models.user_measurement",
    "fedsim.models.user_torch",
)


def loaded_after(code: str) -> set[str]:
    """The heavy libraries that a fresh interpreter has loaded once it has run *code*."""
    report = "import sys, json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return HEAVY & set(json.loads(done.stderr.splitlines()[-1]))


def test_a_heavy_import_is_seen() -> None:
    assert loaded_after("import simpy") == {"simpy"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_light_until_a_name_is_asked_for(package: str) -> None:
    assert loaded_after(f"import {package}") == set()


def test_the_command_lines_help_is_light() -> None:
    ask_for_help = (
        "import runpy, sys\n"
        "sys.argv = ['fedsim', '--help']\n"
        "try:\n"
        "    runpy.run_module('fedsim', run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code"
    )
    assert loaded_after(ask_for_help) == set()


def test_a_scenario_is_checked_without_a_library_for_tables_or_training() -> None:
    checked = PACKAGE.parent / "scenarios" / "quickstart.yaml"
    check = f"from fedsim.cli import main\nassert not main(['validate', {str(checked)!r}])"
    assert not loaded_after(check) & {"pandas", "torch"}


def test_the_solver_is_loaded_when_alike_groups_are_formed_and_no_earlier() -> None:
    choose = (
        "import numpy as np\n"
        "from fedsim import registry\n"
        "chosen = {name: registry.load('groupings', name)() for name in registry.names('groupings')}\n"
        "import fedsim.grouping.quality\n"
    )
    form = "chosen[{!r}].groups(np.eye(4, dtype=np.int64), 2, np.random.default_rng(1))"
    assert loaded_after(choose + form.format("random")) == set()
    assert "ortools" in loaded_after(choose + form.format("icg"))


def test_what_chooses_devices_loads_its_library_when_it_chooses_and_no_earlier() -> None:
    libraries = {"genetic": "pymoo", "bayesian": "sklearn", "cp_sat": "ortools"}
    light = [name for name in registry.names("subsets") if name not in libraries]
    code = (
        "import numpy as np, sys\n"
        "from fedsim import registry\n"
        "chosen = {name: registry.load('subsets', name)() for name in registry.names('subsets')}\n"
        f"for name, library in [*dict.fromkeys({light}).items(), *{libraries}.items()]:\n"
        f"    before = {HEAVY} & set(sys.modules)\n"
        "    chosen[name].choose(np.eye(4), np.ones(4), 2, np.random.default_rng(1))\n"
        f"    now = {HEAVY} & set(sys.modules)\n"
        "    assert library in now - before if library else not now, (name, before, now)\n"
    )
    assert loaded_after(code) >= set(libraries.values())


@pytest.mark.slow
def test_only_trainers_load_torch() -> None:
    files = [path.relative_to(PACKAGE.parent).with_suffix("") for path in sorted(PACKAGE.rglob("*.py"))]
    modules = [".".join(path.parts) for path in files if path.name not in {"__init__", "__main__"}]
    others = [module for module in modules if not module.startswith(TRAINERS)]
    assert "torch" not in loaded_after("\n".join(f"import {module}" for module in others))
