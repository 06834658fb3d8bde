"""A run that is killed again and again, held against one that nobody disturbs."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import digit_runs
from run_server import RunServer
from signals import At, computed

from fedsim.experiment.results import Results

__all__ = ["killed_again_and_again"]

_MOMENTS = 6
"""A kill leaves out fewer moments than that after its expression."""


def killed_again_and_again(server: RunServer, scenario: dict[str, Any], folder: Path, *, kills: int, **how: Any) -> int:
    """Kill a run in each of *kills* equal parts, let it finish, and assert that it ends with the bytes of a whole one.

    *how* are options of `fedsim.experiment.run.run`. Returns how many lines the ledger had after the last kill; the run
    is in the folder ``run`` of *folder*.
    """
    whole, out, rng = folder / "whole", folder / "run", random.Random(7)
    assert server.run(scenario, whole, **how) == 0
    expressions = len(computed(whole))
    for part in range(kills):
        at = At(int(expressions * rng.uniform(part, part + 0.9) / kills), rng.randrange(_MOMENTS))
        stopping: dict[str, Any] = {"at": at, "looks": True, "checkpoint_interval_s": 2}
        assert server.run(scenario, out, resume=True, **how, **stopping) == -signal.SIGKILL
    killed_at = len(digit_runs.ledger(out / "store"))
    assert server.run(scenario, out, resume=True, **how) == 0
    assert digit_runs.outcome(out) == digit_runs.outcome(whole)
    assert Results(out).rounds.equals(Results(whole).rounds)
    return killed_at
