"""Running a sweep: every point that is not there yet, several at a time, all of them into one store.

What two points train alike is trained once: `fedsim.learning.claims` sees to that. A point of which others train all
that is left gives its place to another one, and comes again when one of those has ended.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from fedsim.errors import UserError
from fedsim.experiment.host import CHECKPOINT_INTERVAL_S, HostOptions, cores
from fedsim.experiment.read_results import read_manifest
from fedsim.experiment.results import Results
from fedsim.experiment.sweep.folder import SweepFolder
from fedsim.experiment.sweep.points import Point, PointTask, points_of, scenarios_of
from fedsim.experiment.sweep.pools.choice import pool_for
from fedsim.experiment.sweep.pools.pool import Event
from fedsim.experiment.sweep.results import SweepResults, sweep_table
from fedsim.experiment.sweep.scheduling import is_finished, raise_failures, run_points
from fedsim.experiment.sweep.surroundings import sweep_display_for
from fedsim.experiment.sweep.variation import Variation, from_mapping, from_settings
from fedsim.experiment.validate import validate
from fedsim.files import shown
from fedsim.learning.executors.choice import AUTO
from fedsim.learning.store_folder import check_store
from fedsim.scenario.load import load

__all__ = ["sweep", "sweep_variation"]

_SAVE_INTERVAL_S = 5.0
"""Real seconds between two tables while points end: each has all points that have ended."""


def sweep(
    path: Path | str,
    *,
    vary: Mapping[str, Sequence[object]] | None = None,
    overrides: Sequence[str] = (),
    out: Path | str | None = None,
    store: Path | str | None = None,
    pool: str = "local",
    pool_size: int | None = None,
    executor: str = "auto",
    workers: int | None = None,
    torch_device: str = "cpu",
    precision: str = "float32",
    checkpoint_interval_s: float = CHECKPOINT_INTERVAL_S,
    progress: bool | None = None,
) -> SweepResults:
    """Run the scenario in the file *path* once for each combination of the values that *vary* gives to keys.

    Keys are paths, as in ``--set``: ``{"network.cell.radio.profile": ["nb_iot_nb1", "lte_m_m1"]}``. Without *vary* they
    are those of the scenario's section ``sweep``. *overrides* change the scenario before, as those of `fedsim.load`.
    *out* (default ``runs/<name>-sweep``) has the table, a run folder for each point and, unless *store* says
    otherwise, the store of all. Points that are there already, from this sweep or another one, are not run again.

    *pool* is where points run, ``local`` or ``ray``, and *pool_size* how many at a time: without it one for each core,
    on torch device ``cuda`` one. *workers* are the processes that train for each: without it the cores that are left
    for it. The other options are those of `fedsim.run`; as there, only *executor*, *torch_device* and *precision*
    change numbers, and points that were trained otherwise are told in `SweepResults.remarks`.

    Raises `UserError` when anything asked for is wrong; nothing has been written then. Also when that is found later,
    for some point: the others have been run then, and are in the table. Raises `RunFailedError` where a point was ended
    from outside.
    """
    variation = from_mapping(vary) if vary is not None else None
    return sweep_variation(
        Path(path),
        variation,
        overrides=overrides,
        out=out,
        store=store,
        pool=pool,
        pool_size=pool_size,
        options=HostOptions(
            executor=executor,
            workers=workers,
            torch_device=torch_device,
            precision=precision,
            checkpoint_interval_s=checkpoint_interval_s,
        ),
        progress=progress,
    )


def sweep_variation(
    path: Path,
    variation: Variation | None,
    *,
    overrides: Sequence[str],
    out: Path | str | None,
    store: Path | str | None,
    pool: str,
    pool_size: int | None,
    options: HostOptions,
    progress: bool | None,
) -> SweepResults:
    """As `sweep`, with what is varied worked out; None for what the scenario says."""
    base = load(path, overrides=overrides)
    if variation is None:
        if base.sweep is None:
            raise UserError(f"{shown(path)}: has no section sweep; give --vary key.path=value,value, or write one")
        variation = from_settings(base.sweep)
    points = points_of(path, overrides, variation)
    folder = SweepFolder(
        Path("runs") / f"{base.name}-sweep" if out is None else Path(out), None if store is None else Path(store)
    )
    check_store(folder.store)
    missing = [point for point in points if not is_finished(folder.run_folder(point.key))]
    _check_arithmetic([point for point in points if point not in missing], folder, options)
    if missing:
        _check(path, overrides, variation)
    opens, size = pool_for(pool, pool_size, options, max(1, len(missing)))
    each = 1 if pool == "ray" else max(1, cores() // size)
    tasks = _Tasks(path, overrides, variation, folder, replace(options, most_workers=each))
    failures: dict[str, Event] = {}
    with folder:
        folder.save(base.name, variation.keys, points, "running")
        table = _Table(folder, variation, points)
        table.save()
        with sweep_display_for(progress, total=len(points)) as display:
            display.begins(len(points) - len(missing), size)
            if missing:
                with closing(opens()) as running:
                    failures = run_points(missing, running, tasks.of, display, lambda *_: table.save_now_and_then())
        table.save()
        if not failures:
            folder.save(base.name, variation.keys, points, "finished")
    raise_failures(failures, {point.key: point for point in points})
    return SweepResults(folder.path)


@dataclass(frozen=True)
class _Tasks:
    """Makes the task of a point."""

    path: Path
    overrides: Sequence[str]
    variation: Variation
    folder: SweepFolder
    options: HostOptions

    def of(self, point: Point, patient: bool) -> PointTask:
        """*patient*: whether it is to wait for other points."""
        return PointTask(
            key=point.key,
            scenario=str(self.path.absolute()),
            overrides=tuple(self.overrides),
            values=tuple(self.variation.point(point.values)),
            folder=str(self.folder.run_folder(point.key).absolute()),
            store=str(self.folder.store.absolute()),
            options=self.options,
            patient=patient,
        )


def _check(path: Path, overrides: Sequence[str], variation: Variation) -> None:
    """Build worlds of some points: every value of every key is in one of them.

    A value that fits no world is mostly wrong whatever the others are, and building all may take long.
    """
    for scenario in scenarios_of(path, overrides, variation, variation.sample):
        validate(scenario, every_seed=False)
        gc.collect()  # a world is full of cycles


def _check_arithmetic(points: Sequence[Point], folder: SweepFolder, options: HostOptions) -> None:
    """Raise `UserError` where one of the *points*, which are there already, was trained otherwise than is asked for."""
    for point in points:
        trained = read_manifest(folder.run_folder(point.key) / "manifest.json").get("executor")
        if trained is None:
            continue
        for option, asked, usual in (
            ("executor", options.executor, AUTO),
            ("torch_device", options.torch_device, trained["torch_device"]),
            ("precision", options.precision, None),
        ):
            found = trained["name" if option == "executor" else option]
            if asked not in (found, usual):
                word = f"--{option.replace('_', '-')} {asked}"
                raise UserError(
                    f"{word}: the point {point.said} is there already, trained with {found}, and one table cannot have "
                    "both; choose another folder with --out"
                )


class _Table:
    """The table of the points that have ended so far; each is read once."""

    def __init__(self, folder: SweepFolder, variation: Variation, points: Sequence[Point]) -> None:
        self._folder, self._variation, self._points = folder, variation, points
        self._ended: dict[str, Results] = {}
        self._saved_s = time.monotonic()

    def save(self) -> None:
        """Write it; there is no file of it where none has ended."""
        for point in self._points:
            folder = self._folder.run_folder(point.key)
            if point.key not in self._ended and is_finished(folder):
                self._ended[point.key] = Results(folder)
        ended = [point for point in self._points if point.key in self._ended]
        if ended:
            results = [self._ended[point.key] for point in ended]
            self._folder.save_table(sweep_table(self._variation.keys, [point.values for point in ended], results))
        else:
            self._folder.remove_table()
        self._saved_s = time.monotonic()

    def save_now_and_then(self) -> None:
        """Write it, unless that was done just before."""
        if time.monotonic() - self._saved_s >= _SAVE_INTERVAL_S:
            self.save()
