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


def test_the_collector_does_not_look_through_libraries_when_a_command_begins_or_ends() -> None:
    """Looking again and again takes as long as a third of the imports, and most of a second at the end of a run."""
    code = (
        "import gc, sys\n"
        "from unittest.mock import patch\n"
        "import fedsim.cli\n"
        "from fedsim.__main__ import main\n"
        "inside, outside = [], gc.get_threshold()\n"
        "with patch.object(fedsim.cli, 'main', lambda: inside.append(gc.get_threshold()) or 3):\n"
        "    assert main() == 3\n"
        "assert inside[0][0] >= 100_000 and gc.get_threshold() == outside, inside\n"
        "assert gc.get_freeze_count() > 1000"
    )
    loaded_after(code)


def test_intervals_need_no_more_than_one_function() -> None:
    """scipy.stats takes half a second to load, more than all else that is printed at the end of a run."""
    code = "import sys\nfrom fedsim.metrics.intervals import half_width\nassert half_width([1.0]) != 0\n"
    loaded_after(
        f"{code}assert 'scipy' not in sys.modules\nhalf_width([1.0, 2.0])\nassert 'scipy.stats' not in sys.modules"
    )


@pytest.mark.parametrize("name", ["quickstart", "digits"])
def test_a_scenario_is_checked_with_no_library_but_the_clocks(name: str) -> None:
    """Neither for tables or training, nor those that bring the fonts of one data set and the file of the other."""
    checked = PACKAGE.parent / "scenarios" / f"{name}.yaml"
    check = f"from fedsim.cli import main\nassert not main(['validate', {str(checked)!r}])"
    assert loaded_after(check) == {"simpy"}


def test_a_class_is_loaded_when_a_scenario_names_it_and_no_earlier() -> None:
    """Not even what is registered beside it, from which all keys follow; that is for the schema."""
    check = (
        "import sys\n"
        "from fedsim.cli import main\n"
        "assert not main(['validate', 'scenarios/quickstart.yaml'])\n"
        "there = {'fedsim.protocols.spatl', 'fedsim.models.vdcnn', 'fedsim.data.cifar10'} & set(sys.modules)\n"
        "assert not there and 'fedsim.models.small_cnn' in sys.modules, there\n"
        "assert not main(['schema']) and 'fedsim.models.vdcnn' in sys.modules"
    )
    loaded_after(f"import os\nos.chdir({str(PACKAGE.parent)!r})\n{check}")


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
