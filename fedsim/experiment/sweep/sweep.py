"""Running a sweep: every point that is not there yet, several at a time, all of them into one store.

What two points train alike is trained once: `fedsim.learning.claims` sees to that. A point of which others train all
that is left gives its place to another one, and comes again when one of those has ended.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedsim.errors import RunFailedError, UserError
from fedsim.experiment.host import CHECKPOINT_INTERVAL_S, HostOptions, cores
from fedsim.experiment.progress.sweep_display import SweepDisplay, sweep_display_for
from fedsim.experiment.read_results import read_manifest
from fedsim.experiment.results import Results
from fedsim.experiment.sweep.folder import SweepFolder
from fedsim.experiment.sweep.points import Point, PointTask, points_of, scenarios_of
from fedsim.experiment.sweep.pools.choice import POOLS
from fedsim.experiment.sweep.pools.choice import pool_for as _pool
from fedsim.experiment.sweep.pools.pool import Event, Pool
from fedsim.experiment.sweep.results import SweepResults, sweep_table
from fedsim.experiment.sweep.variation import Variation, from_mapping, from_settings
from fedsim.experiment.validate import validate
from fedsim.learning.store_folder import check_store
from fedsim.scenario.load import load
from fedsim.scenario.scalars import message_line

__all__ = ["POOLS", "is_finished", "raise_failures", "run_points", "sweep", "sweep_variation"]

_MOST_KILLS = 2
"""Of one point; then it is no accident."""


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
    for it. The other options are those of `fedsim.run`. None of them changes a result.

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
            raise UserError(f"{path}: has no section sweep; give --vary key.path=value,value, or write one")
        variation = from_settings(base.sweep)
    points = points_of(path, overrides, variation)
    _check(path, overrides, variation)
    folder = SweepFolder(
        Path("runs") / f"{base.name}-sweep" if out is None else Path(out), None if store is None else Path(store)
    )
    check_store(folder.store)
    distinct = list({point.key: point for point in points}.values())
    opens, size = _pool(pool, pool_size, options, len(distinct))
    each = 1 if pool == "ray" else max(1, cores() // size)
    tasks = _Tasks(path, overrides, variation, folder, replace(options, most_workers=each))
    with folder:
        folder.save(base.name, variation.keys, variation.short_keys, points, "running")
        missing = [point for point in distinct if not is_finished(folder.run_folder(point.key))]
        failures: dict[str, Event] = {}
        if missing:
            with sweep_display_for(progress, total=len(distinct)) as display:
                display.begins(len(distinct) - len(missing), size)
                running = opens()
                try:
                    failures = run_points(
                        missing, running, tasks.of, display, lambda *_: _save_table(folder, variation, points)
                    )
                finally:
                    running.close()
        if not failures:
            folder.save(base.name, variation.keys, variation.short_keys, points, "finished")
        _save_table(folder, variation, points)
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


def run_points(
    points: Sequence[Point],
    pool: Pool,
    task_of: Callable[[Point, bool], PointTask],
    display: SweepDisplay,
    ended: Callable[[Point, Event], None],
) -> dict[str, Event]:
    """Run the *points*; what went wrong, by key. *ended* is called when another one is done, or has paused.

    *task_of* makes a point's task; its second argument is whether it is to wait for other points.
    """
    waiting, put_off = deque(points), deque[Point]()
    running: dict[str, Point] = {}
    failures: dict[str, Event] = {}
    kills: Counter[str] = Counter()
    while waiting or put_off or running:
        if not waiting and not running:  # whoever trains what is left is no point of this sweep, or was killed
            waiting.append(put_off.popleft())
            patient = True
        else:
            patient = False
        while waiting and len(running) < pool.size:
            point = waiting.popleft()
            running[point.key] = point
            pool.start(task_of(point, patient))
        for event in pool.events():
            point = running[event.key]
            display.happened(point, event)
            if event.kind == "progress":
                continue
            del running[event.key]
            if event.kind == "put off":
                put_off.append(point)
                continue
            if event.kind == "killed" and kills.update([event.key]) is None and kills[event.key] < _MOST_KILLS:
                waiting.append(point)
            elif event.kind not in ("done", "paused"):
                failures[event.key] = event
            else:
                ended(point, event)
            waiting.extend(put_off)  # what kept them may have ended
            put_off.clear()
    return failures


def _check(path: Path, overrides: Sequence[str], variation: Variation) -> None:
    """Build worlds of some points: every value of every key is in one of them.

    A value that fits no world is mostly wrong whatever the others are, and building all may take long.
    """
    for scenario in scenarios_of(path, overrides, variation, variation.sample):
        validate(scenario, every_seed=False)
        gc.collect()  # a world is full of cycles


def is_finished(folder: Path) -> bool:
    """Whether a point's run is complete."""
    path = folder / "manifest.json"
    return path.is_file() and read_manifest(path)["status"] == "finished"


def _save_table(folder: SweepFolder, variation: Variation, points: Sequence[Point]) -> None:
    """The table of the points that have ended."""
    ended = [point for point in points if is_finished(folder.run_folder(point.key))]
    if ended:
        results = [Results(folder.run_folder(point.key)) for point in ended]
        folder.save_table(sweep_table(variation.keys, [point.values for point in ended], results))


def raise_failures(failures: Mapping[str, Event], points: Mapping[str, Point]) -> None:
    """Raise what has gone wrong, if anything has."""
    if not failures:
        return
    for event in failures.values():
        if event.kind == "crashed":
            raise RuntimeError(f"in the point {points[event.key].said}:\n{event.text}")
    lines = [message_line(f"{points[key].said}: {event.text}") for key, event in failures.items()]
    problem = f"{len(lines)} of {len(points)} points have no result; the others are in the table\n" + "\n".join(lines)
    wrong = any(event.kind == "wrong" for event in failures.values())
    raise (UserError if wrong else RunFailedError)(problem)
