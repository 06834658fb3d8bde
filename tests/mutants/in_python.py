"""Faults in what scripts and notebooks see: progress, remarks, trained models, results that show themselves."""

from __future__ import annotations

from mutants.fault import Fault

RUN = "fedsim/experiment/run.py"
NOTEBOOK = "fedsim/experiment/progress/notebook.py"
SURROUNDINGS = "fedsim/experiment/progress/surroundings.py"
TEST_PROGRESS = "tests/experiment/test_progress_in_python.py"
TEST_REMARKS = "tests/experiment/test_remarks_in_python.py"
TEST_MODEL = "tests/experiment/test_trained_model.py"
TEST_SHOWN = "tests/experiment/test_shown_results.py"

FAULTS = (
    Fault(
        "a warning points into fedsim",
        RUN,
        "warnings.warn(remark, Remark, stacklevel=3)",
        "warnings.warn(remark, Remark, stacklevel=2)",
        (TEST_REMARKS,),
    ),
    Fault(
        "remarks on results are not kept",
        RUN,
        'folder.manifest["remarks"] += map(printable, remarks_after(Results(folder.path)))',
        "remarks_after(Results(folder.path))",
        (TEST_REMARKS,),
    ),
    Fault(
        "an interrupted run leaves a bar in a notebook",
        NOTEBOOK,
        "                self._runs.clear()\n",
        "",
        (TEST_PROGRESS,),
    ),
    Fault(
        "a notebook is drawn for each round",
        NOTEBOOK,
        "    _interval_s = REDRAW_INTERVAL_S\n",
        "    _interval_s = 0.0\n",
        (TEST_PROGRESS,),
    ),
    Fault(
        "a shell that is derived from a kernel's is no notebook",
        SURROUNDINGS,
        "for kind in type(get_ipython()).__mro__",
        "for kind in (type(get_ipython()),)",
        (TEST_PROGRESS,),
    ),
    Fault(
        "a script on a pipe is full of progress",
        SURROUNDINGS,
        "Lines(sys.stderr) if progress else",
        "Lines(sys.stderr) if progress is None or progress else",
        (TEST_PROGRESS,),
    ),
    Fault(
        "a loaded model is one in training",
        "fedsim/models/torch_module.py",
        "    module.eval()\n",
        "",
        (TEST_MODEL,),
    ),
    Fault(
        "each class of devices has the scenario's model",
        "fedsim/experiment/trained_model.py",
        'place = f"{device_class}/" if device_class in own else ""',
        'place = ""',
        ("tests/outside/test_two_models.py",),
    ),
    Fault(
        "a name becomes a tag in a notebook",
        "fedsim/experiment/shown_results.py",
        'f"<div>Remark: {escape(remark)}</div>"',
        'f"<div>Remark: {remark}</div>"',
        (TEST_SHOWN,),
    ),
)
