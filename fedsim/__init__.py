"""What does a federated-learning protocol cost and yield on an industrial network?

`load` reads a scenario, `run` runs it, and `load_results` opens a run folder. `retime` times a run anew on another
network; `sweep` runs a scenario with many values of some keys, and `load_sweep` opens what it left; `advise` searches
among such values for what reaches an accuracy within budgets, and answers with an `Advice`. `compare` and `plot` put
runs side by side, `compare_device_classes` their device classes, and `export` hands them over to other tools.
`Results` is what they give and take, `Remark` a warning about a scenario or its results, `UserError` what a mistake
raises. Each is imported when it is first asked for: ``import fedsim`` loads no library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedsim.errors import Remark, UserError
    from fedsim.experiment.advise.advise import Advice, advise
    from fedsim.experiment.compare import compare
    from fedsim.experiment.compare_device_classes import compare_device_classes
    from fedsim.experiment.exports.export import export
    from fedsim.experiment.figures import plot
    from fedsim.experiment.results import Results, load_results
    from fedsim.experiment.retime import retime
    from fedsim.experiment.run import run
    from fedsim.experiment.sweep.results import SweepResults, load_sweep
    from fedsim.experiment.sweep.sweep import sweep
    from fedsim.scenario.load import load

    __version__: str

__all__ = [
    "Advice",
    "Remark",
    "Results",
    "SweepResults",
    "UserError",
    "__version__",
    "advise",
    "compare",
    "compare_device_classes",
    "export",
    "load",
    "load_results",
    "load_sweep",
    "plot",
    "retime",
    "run",
    "sweep",
]

_HOMES = {
    "Advice": "fedsim.experiment.advise.advise",
    "Remark": "fedsim.errors",
    "Results": "fedsim.experiment.results",
    "SweepResults": "fedsim.experiment.sweep.results",
    "UserError": "fedsim.errors",
    "advise": "fedsim.experiment.advise.advise",
    "compare": "fedsim.experiment.compare",
    "compare_device_classes": "fedsim.experiment.compare_device_classes",
    "export": "fedsim.experiment.exports.export",
    "load": "fedsim.scenario.load",
    "load_results": "fedsim.experiment.results",
    "load_sweep": "fedsim.experiment.sweep.results",
    "plot": "fedsim.experiment.figures",
    "retime": "fedsim.experiment.retime",
    "run": "fedsim.experiment.run",
    "sweep": "fedsim.experiment.sweep.sweep",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("fedsim-industrial")
    if name not in _HOMES:
        raise AttributeError(f"module 'fedsim' has no attribute {name!r}", name=name)
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
