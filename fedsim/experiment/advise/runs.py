"""The runs of a search: a candidate on a seed, to its end or to a pause, each a point in the folder of the search."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pandas as pd

from fedsim.errors import UserError
from fedsim.experiment.advise.candidates import Candidate
from fedsim.experiment.compare import Budget
from fedsim.experiment.host import HostOptions, cores
from fedsim.experiment.results import Results
from fedsim.experiment.sweep.folder import SweepFolder
from fedsim.experiment.sweep.points import Point, PointTask, key_of, without_sweep
from fedsim.experiment.sweep.pools.pool import Evaluation, Event, Pool
from fedsim.experiment.sweep.scheduling import is_finished, raise_failures, run_points
from fedsim.experiment.sweep.surroundings import sweep_display_for
from fedsim.files import read_own_file, shown
from fedsim.scenario.load import Varied, load_varied

FORMAT = "fedsim-advice-1"
"""What ``advice.json`` says that it is."""

__all__ = ["FORMAT", "Job", "Progress", "Runs", "SearchFolder"]


class SearchFolder(SweepFolder):
    """The folder of a search, with a run folder for each candidate on each seed that it looks at."""

    manifest, table, kind = "advice.json", "advice.csv", "search"

    def _check_manifest(self) -> None:
        path = self.path / self.manifest
        try:
            found = json.loads(read_own_file(path) or b"")
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise UserError(f"{shown(path)} is no answer of a search; choose another folder with --out")


@dataclass(frozen=True)
class Job:
    """A candidate on a seed until its stop, or until a pause before.

    Only the clock is run to a stop at the budgets. What trains pauses there: at a stop the last model would be scored
    and kept, though it may be one on the way of another candidate that learns the same and has gone further.
    """

    candidate: Candidate
    seed: int
    stop: Mapping[str, float]
    learn: bool = True
    pause: tuple[Budget, ...] = ()
    """It pauses after the first round that has spent one of these."""

    @property
    def values(self) -> tuple[Varied, ...]:
        """The keys of its scenario."""
        own = {"stop": dict(self.stop), "seeds": [self.seed]} | ({} if self.learn else {"learn": False})
        set_here = (Varied(key, value, f"the search ({self.candidate.said})") for key, value in own.items())
        return (*self.candidate.values, self.candidate.only, *set_here)


@dataclass(frozen=True)
class Progress:
    """How far a candidate has come on a seed."""

    rounds: pd.DataFrame
    """Its table of rounds; of a run that has paused, the evaluated ones, with fewer columns."""
    ended: bool


class Runs:
    """Runs jobs, several at a time, all of them into the store of the search; a ``with`` block ends its processes."""

    def __init__(
        self,
        path: Path,
        overrides: Sequence[str],
        folder: SweepFolder,
        options: HostOptions,
        open_pool: Callable[[], Pool],
        *,
        size: int,
        each: int | None,
        progress: bool | None,
    ) -> None:
        """*size* of the pool, and *each*: the processes that train for a job, None for the cores left for it."""
        self._path, self._overrides, self._folder, self._options = path, tuple(overrides), folder, options
        self._open_pool, self._size, self._each, self._progress = open_pool, size, each, progress
        self._pool: Pool | None = None

    def run(self, jobs: Sequence[Job], said: str) -> list[Progress]:
        """Run the *jobs*, of what is called *said*; returns how far each has come.

        Raises what went wrong with any of them, when all others have been run.
        """
        if not jobs:
            return []
        scenarios = load_varied(self._path, [job.values for job in jobs], overrides=self._overrides)
        keys = [key_of(without_sweep(scenario)) for scenario in scenarios]
        by_key = dict(zip(keys, jobs, strict=True))
        points = {key: Point(key, (), f"{job.candidate.said}, seed {job.seed}") for key, job in by_key.items()}
        missing = [point for key, point in points.items() if not is_finished(self._folder.run_folder(key))]
        paused: dict[str, tuple[Evaluation, ...]] = {}
        if missing:
            options = replace(
                self._options, most_workers=self._each or max(1, cores() // min(self._size, len(missing)))
            )

            def task_of(point: Point, patient: bool) -> PointTask:
                return self._task(point.key, by_key[point.key], options, patient)

            def ended(point: Point, event: Event) -> None:
                if event.kind == "paused":
                    paused[point.key] = event.evaluations

            if self._pool is None:
                self._pool = self._open_pool()
            with sweep_display_for(self._progress, total=len(points), said=said) as display:
                display.begins(len(points) - len(missing), self._size)
                failures = run_points(missing, self._pool, task_of, display, ended)
            raise_failures(failures, points)
        return [self._progress_of(key, paused) for key in keys]

    def _task(self, key: str, job: Job, options: HostOptions, patient: bool) -> PointTask:
        return PointTask(
            key=key,
            scenario=str(self._path.absolute()),
            overrides=self._overrides,
            values=job.values,
            folder=str(self._folder.run_folder(key).absolute()),
            store=str(self._folder.store.absolute()),
            options=options,
            patient=patient,
            pause=job.pause,
        )

    def _progress_of(self, key: str, paused: Mapping[str, Iterable[Evaluation]]) -> Progress:
        if key in paused:
            return Progress(pd.DataFrame(paused[key], columns=list(Evaluation._fields)), ended=False)
        return Progress(Results(self._folder.run_folder(key)).rounds, ended=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._pool is not None:
            self._pool.close()
