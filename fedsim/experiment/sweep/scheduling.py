"""Running points in a pool: all that there is room for at a time, each until it has a result or there will be none."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fedsim.errors import RunFailedError, UserError
from fedsim.experiment.read_results import read_manifest
from fedsim.experiment.sweep.display import SweepDisplay
from fedsim.experiment.sweep.points import Point, PointTask
from fedsim.experiment.sweep.pools.pool import Event, Pool
from fedsim.scenario.scalars import message_line

__all__ = ["is_finished", "raise_failures", "run_points"]

_MOST_KILLS = 2
"""Of one point; then it is no accident."""


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
        patient = not waiting and not running
        if patient:  # whoever trains what is left is none of these points, or was killed
            waiting, put_off = put_off, deque()
        while waiting and len(running) < pool.size:
            point = waiting.popleft()
            running[point.key] = point
            pool.start(task_of(point, patient))
        for event in pool.events():
            display.happened(running[event.key], event)
            if not event.ends:
                continue
            point = running.pop(event.key)
            kills[event.key] += event.kind == "killed"
            if event.kind == "put off":
                put_off.append(point)
                continue
            if event.kind in ("done", "paused"):
                ended(point, event)
            elif event.kind == "killed" and kills[event.key] < _MOST_KILLS:
                waiting.append(point)
            else:
                failures[event.key] = event
            waiting.extend(put_off)  # what kept them may have ended
            put_off.clear()
    return failures


def is_finished(folder: Path) -> bool:
    """Whether a point's run is complete."""
    path = folder / "manifest.json"
    return path.is_file() and read_manifest(path)["status"] == "finished"


def raise_failures(failures: Mapping[str, Event], points: Mapping[str, Point]) -> None:
    """Raise what has gone wrong, if anything has."""
    if not failures:
        return
    told = {key: event.text for key, event in failures.items() if event.kind != "crashed"}
    lines = [message_line(f"{points[key].said}: {text}") for key, text in told.items()]
    problem = f"{len(failures)} of {len(points)} points have no result; the others are in the table"
    crashed = [f"in the point {points[e.key].said}:\n{e.text}" for e in failures.values() if e.kind == "crashed"]
    if crashed:
        raise RuntimeError("\n".join([problem, *lines, crashed[0]]))
    wrong = any(event.kind == "wrong" for event in failures.values())
    raise (UserError if wrong else RunFailedError)("\n".join([problem, *lines]))
