"""fedsim in this process, as it is used: a scenario, ``executor=auto``, all cores, an observer that hands out rounds.

Nothing is left out of a round: clock, network, graph, training, evaluation, trace and store. What comes before the
first round, and that round itself, is over when the first one is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors.torch import load_file

import fedsim
from benchmarks.models_work import SEED, TensorDict, Work
from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round


class RunFailed(Exception):
    """Why fedsim has no round to measure."""


class Rounds(Observer):
    """A run whose rounds begin when they are asked for."""

    def __init__(self, work: Work, out: Path, precision: str, rounds: int) -> None:
        self._asked, self._ended = threading.Semaphore(0), threading.Semaphore(0)
        self._work, self._out, self._precision, self._rounds = work, out, precision, rounds
        self._failure: Exception | None = None
        self._run = threading.Thread(target=self._go)
        self.executor = ""
        """What trains, known when the run has ended."""

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        """Say so, and wait for the next."""
        self._ended.release()
        self._asked.acquire()

    def start(self) -> None:
        """Return after the first round. Raises `RunFailed`."""
        self._run.start()
        self._wait()

    def another(self) -> None:
        """A round; returns when it is done. Raises `RunFailed`, also after the last one."""
        self._asked.release()
        self._wait()

    def finish(self) -> None:
        """Let the run go to its end."""
        self._asked.release(self._rounds)
        self._run.join()

    def _wait(self) -> None:
        self._ended.acquire()
        if self._failure is not None:
            raise RunFailed(str(self._failure)) from self._failure

    def _go(self) -> None:
        try:
            scenario = self._work.scenario(self._rounds)
            results = fedsim.run(scenario, out=self._out, observer=self, precision=self._precision)
            self.executor = results.manifest["executor"]["name"]
            self._failure = RunFailed("the run has ended")
        except Exception as error:
            self._failure = error if isinstance(error, UserError) else RunFailed(f"{type(error).__name__}: {error}")
        self._ended.release()


@contextmanager
def rounds_of(work: Work, out: Path, precision: str, rounds: int) -> Iterator[Rounds]:
    """A run whose first round is done, and which has *rounds* in all. Raises `RunFailed`."""
    run = Rounds(work, out, precision, rounds)
    try:
        run.start()
        yield run
    finally:
        run.finish()


def first_model(work: Work, out: Path, precision: str) -> dict[str, TensorDict]:
    """What a run of one round makes. Raises `RunFailed`."""
    try:
        results = fedsim.run(work.scenario(1), out=out, observer=Observer(), precision=precision)
    except UserError as error:
        raise RunFailed(str(error)) from error
    return {part: load_file(path) for part, path in results.final_weights("fedavg", SEED).items()}
