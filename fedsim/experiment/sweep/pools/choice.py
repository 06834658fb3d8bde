"""Which pool a sweep has, and how large it is."""

from __future__ import annotations

from collections.abc import Callable

from fedsim.errors import UserError
from fedsim.experiment.host import HostOptions, cores
from fedsim.experiment.sweep.pools.pool import Pool

__all__ = ["POOLS", "pool_for"]

POOLS = ("local", "ray")
"""Processes of this machine, or of a Ray cluster."""


def pool_for(name: str, size: int | None, options: HostOptions, points: int) -> tuple[Callable[[], Pool], int]:
    """How to open the pool, and its size. Raises `UserError` when there is no such pool here."""
    if size is not None and not (type(size) is int and size >= 1):
        raise UserError(f"--pool-size: {size!r} must be a whole number of at least 1")
    if name == "local":
        from fedsim.experiment.sweep.pools.local import LocalPool

        most = size or (1 if options.torch_device == "cuda" else max(1, cores() // (options.workers or 1)))
        chosen = min(points, most)
        return lambda: LocalPool(chosen), chosen
    if name == "ray":
        from fedsim.experiment.sweep.pools.ray_pool import RayPool, check_ray

        check_ray()
        if options.workers not in (None, 1):
            raise UserError("--workers: on a Ray cluster each run trains in one process; leave it out")
        chosen = min(points, size or points)
        return lambda: RayPool(chosen), chosen
    raise UserError(f"--pool: {name!r} must be one of {', '.join(POOLS)}")
