"""fedsim in this process, as it is used: a scenario, ``executor=auto``, all cores.

Nothing is left out of a round: clock, network, graph, training, evaluation, trace and store. What comes before the
first round counts for that round.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file

import fedsim
from benchmarks.models_loop import LoopFailed
from benchmarks.models_table import Turn
from benchmarks.models_work import SEED, TensorDict, Work
from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.results import Results
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round


class RunFailed(Exception):
    """Why fedsim has no round to measure."""


class RoundsInTurn(Observer):
    """A run, between whose rounds something else has its turn.

    The run is in the main thread, as it is when it is used: the memory that workers can keep depends on the thread that
    has forked them.
    """

    def __init__(self, other: Callable[[], None]) -> None:
        self._other, self._begun = other, Turn.begun()
        self.turns: list[tuple[Turn, Turn]] = []
        """Of each round: what it took, and what the other took after it."""

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        """Let the other have its turn, and begin the next round."""
        own = Turn.since(self._begun)
        begun = Turn.begun()
        self._other()
        self.turns.append((own, Turn.since(begun)))
        self._begun = Turn.begun()


def rounds_in_turn(
    work: Work, out: Path, precision: str, rounds: int, other: Callable[[], None]
) -> tuple[str, list[tuple[Turn, Turn]]]:
    """The executor of a run of so many *rounds*, and what each round took and *other* after it. Raises `RunFailed`."""
    observer = RoundsInTurn(other)
    results = _run(work, out, precision, rounds, observer)
    return results.manifest["executor"]["name"], observer.turns


def first_model(work: Work, out: Path, precision: str) -> dict[str, TensorDict]:
    """What a run of one round makes. Raises `RunFailed`."""
    results = _run(work, out, precision, 1, Observer())
    return {part: load_file(path) for part, path in results.final_weights("fedavg", SEED).items()}


def _run(work: Work, out: Path, precision: str, rounds: int, observer: Observer) -> Results:
    try:
        return fedsim.run(work.scenario(rounds), out=out, observer=observer, precision=precision)
    except LoopFailed:  # the other's turn, and no fault of the run
        raise
    except Exception as error:  # whatever it is, it is told in its row, and the other rows are measured
        raise RunFailed(str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}") from error
