"""``import fedsim`` gives the names that scripts and notebooks rely on, and gives them late."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

import fedsim
from fedsim.errors import Remark, UserError
from fedsim.experiment.compare import compare
from fedsim.experiment.exports.export import export
from fedsim.experiment.figures import plot
from fedsim.experiment.results import Results, load_results
from fedsim.experiment.retime import retime
from fedsim.experiment.run import run
from fedsim.scenario.load import load

HEAVY = ("IPython", "matplotlib", "networkx", "numpy", "pandas", "pydantic", "scipy", "simpy", "torch", "yaml")


def test_the_names_are_the_librarys_own() -> None:
    assert (fedsim.load, fedsim.run, fedsim.load_results, fedsim.retime) == (load, run, load_results, retime)
    assert (fedsim.compare, fedsim.plot, fedsim.Results) == (compare, plot, Results)
    assert fedsim.export is export
    assert (fedsim.Remark, fedsim.UserError) == (Remark, UserError)
    assert fedsim.__version__ == metadata.version("fedsim-industrial")
    assert set(fedsim.__all__) <= set(dir(fedsim))


def test_importing_loads_no_library() -> None:
    code = "import sys, fedsim, fedsim.cli; print(*(set(sys.modules) & set(sys.argv[1:])))"
    done = subprocess.run([sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'fedsim' has no attribute 'lod'"):
        fedsim.lod  # noqa: B018
