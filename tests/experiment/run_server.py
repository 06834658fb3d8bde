"""Runs in processes of their own that start at once: a server that has imported everything forks one for each run.

So a test may start many, kill them at any moment, and have them go on, in little time.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from signals import At, count_time_in_looks, send_itself

INTERRUPTED, REFUSED, FAILED = 130, 2, 1


class RunServer:
    """The server, from the test's side. Processes that the test forgets end with it.

    Args:
        exact_memory: Whether a block of a megabyte or more goes back to the kernel as soon as it is free, which costs
            time. Otherwise the C library keeps some of them, and how many is different each time. Only with glibc.
    """

    def __init__(self, *, exact_memory: bool = False) -> None:
        self._environment = {"OMP_NUM_THREADS": "1"} | ({"MALLOC_MMAP_THRESHOLD_": str(2**20)} if exact_memory else {})

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=os.environ | self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def start(
        self, scenario: dict[str, Any], out: Path, *, at: At | None = None, looks: bool = False, **options: Any
    ) -> int:
        """Start a run, which sends itself a signal *at* some moment; returns its process id, its own until `wait`.

        If *looks*, its checkpoints come every so many chunks, not seconds.
        """
        return self._ask({"scenario": scenario, "out": str(out), "at": at, "looks": looks, "options": options})

    def wait(self, process: int) -> int:
        """Wait for its end: 0, `REFUSED`, `FAILED` or `INTERRUPTED`, or minus the signal that killed or stopped it."""
        return self._ask({"wait": process})

    def run(self, scenario: dict[str, Any], out: Path, **options: Any) -> int:
        """Start a run and wait for its end."""
        return self.wait(self.start(scenario, out, **options))

    def _ask(self, question: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: int = json.loads(self._process.stdout.readline())
        return answer


def last_message(out: Path) -> str:
    """Why the last run into this folder was refused or failed."""
    return _message_path(out).read_text("utf-8")


def peaks(out: Path) -> list[int]:
    """The most bytes of memory that the run into this folder had had resident by the end of each of its rounds."""
    return [int(line) for line in _peaks_path(out).read_text("utf-8").splitlines()]


def _message_path(out: Path) -> Path:
    return out.with_name(f"{out.name}.message")


def _peaks_path(out: Path) -> Path:
    return out.with_name(f"{out.name}.peaks")


def _run(question: dict[str, Any]) -> int:
    from fedsim.errors import UserError
    from fedsim.experiment.manifest import peak_memory_bytes
    from fedsim.experiment.observer import Observer
    from fedsim.experiment.run import run
    from fedsim.scenario.schema import Scenario

    out = Path(question["out"])

    class Measuring(Observer):
        def round_done(self, *_: object) -> None:
            with _peaks_path(out).open("a") as file:
                file.write(f"{peak_memory_bytes()}\n")

    try:
        run(Scenario.model_validate(question["scenario"]), out=out, observer=Measuring(), **question["options"])
    except KeyboardInterrupt:
        return INTERRUPTED
    except UserError as error:
        _message_path(out).write_text(str(error), "utf-8")
        return REFUSED
    except BaseException:
        _message_path(out).write_text(traceback.format_exc(), "utf-8")
        return FAILED
    return 0


def _serve() -> None:
    _get_ready()
    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            status = os.waitpid(question["wait"], os.WUNTRACED)[1]
            answer = -os.WSTOPSIG(status) if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
        elif not (answer := os.fork()):
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            if question["looks"]:
                count_time_in_looks()
            if question["at"]:
                send_itself(At(*question["at"]), Path(question["out"]))
            os._exit(_run(question))
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _get_ready() -> None:
    """Load what a run loads, and compute nothing: a process may not be forked once it has threads."""
    import pyarrow.parquet  # noqa: F401
    import sklearn.datasets
    import torch

    from fedsim.experiment import run  # noqa: F401
    from fedsim.learning.executors import serial  # noqa: F401
    from fedsim.models.softmax import Softmax
    from fedsim.models.torch_module import build

    torch.set_num_threads(1)
    sklearn.datasets.load_digits()
    build(Softmax().table((1, 8, 8), 10))
    gc.collect()
    gc.freeze()  # a run collects its garbage often; what was loaded is none


if __name__ == "__main__":
    _serve()
