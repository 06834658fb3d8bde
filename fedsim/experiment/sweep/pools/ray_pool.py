"""A Ray cluster: each point is one of its tasks, and its results come by files, which all machines have to see.

Ray pickles what it sends between its own processes. That is the cluster's own traffic; no file of a run is a pickle.
The cluster is the one that ``RAY_ADDRESS`` names, or that runs on this machine; else one is started for the sweep.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from typing import Any

from fedsim.errors import RunFailedError, UserError, in_short
from fedsim.experiment.sweep.points import PointTask
from fedsim.experiment.sweep.pools.pool import Event, Pool, run_point

__all__ = ["RayPool", "check_ray"]


def check_ray() -> None:
    """Raise `UserError` when Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise UserError("--pool ray: Ray is not installed here; pip install 'ray>=2.50'")


class RayPool(Pool):
    """Up to *size* points at a time; those for which the cluster has no room wait there.

    Raises `RunFailedError` when the cluster cannot be reached.
    """

    def __init__(self, size: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self.size = size
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            paths = os.pathsep.join(filter(None, sys.path))
            try:
                ray.init(
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    runtime_env={"env_vars": {"PYTHONPATH": paths}},
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise RunFailedError(f"--pool ray: the cluster cannot be reached: {in_short(error)}") from error
        # A task that died is not taken for another try there: the sweep gives it one, and counts.
        self._remote = ray.remote(num_cpus=1, max_retries=0)(_run)
        self._keys: dict[Any, str] = {}

    def start(self, task: PointTask) -> None:
        """Hand the point to the cluster."""
        self._keys[self._remote.remote(task)] = task.key

    def events(self) -> list[Event]:
        """Which points have ended, and how."""
        ended, _ = self._ray.wait(list(self._keys), num_returns=1)
        return [self._end_of(reference) for reference in ended]

    def close(self) -> None:
        """End all points; and the cluster, or the connection, if it was made for the sweep."""
        for reference in self._keys:
            self._ray.cancel(reference, force=True)
        self._keys.clear()
        if self._ours:
            self._ray.shutdown()

    def _end_of(self, reference: Any) -> Event:
        key = self._keys.pop(reference)
        try:
            event: Event = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return Event(key, "killed", f"its process was ended from outside ({type(error).__name__})")
        return event


def _run(task: PointTask) -> Event:
    """What a task of the cluster does. Nobody hears how far it is: the cluster brings only results."""
    return run_point(task, lambda _: None)
