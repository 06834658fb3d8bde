"""The results of several runs, given as they are or as their folders; that of a sweep stands for all its points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedsim.errors import UserError
from fedsim.experiment.results import NoRun, Results, load_results
from fedsim.experiment.sweep_manifest import finished_sweep, is_sweep, load_points
from fedsim.files import shown
from fedsim.scenario.scalars import show

__all__ = ["check_once", "load_finished", "load_several"]


def load_finished(folders: Sequence[Path]) -> tuple[list[Results], list[str]]:
    """The finished runs among several *folders*, as of ``runs/*``, and a sentence for each that holds none.

    Raises `UserError` when there is none at all, when a run is among them twice, and when a folder is not there or
    holds a run that is damaged. A single folder is meant as it is: `load_results`.
    """
    if len(folders) == 1:
        return _runs_in(folders[0]), []
    results, passed_over = [], []
    for folder in folders:
        try:
            results += _runs_in(folder)
        except NoRun as problem:
            passed_over.append(str(problem))
    if not results:
        raise UserError(f"none of these {len(folders)} is a finished run; the first: {passed_over[0]}")
    check_once(results)
    return results, passed_over


def load_several(results: Sequence[Results | Path | str]) -> list[Results]:
    """The results of several runs, each given as it is or as its folder.

    Raises `UserError` when there is no finished run in a folder, no run at all, one twice, or one that stands in no
    list.
    """
    if isinstance(results, Results | Path | str):
        raise UserError("runs are given as a list, also a single one: write [...] around it")
    if not results:
        raise UserError("at least one run is needed, and the list of runs is empty")
    for result in results:
        if not isinstance(result, Results | Path | str):
            raise UserError(f"a run is its results or its folder, and not {show(result)}")
    opened: list[Results] = []
    for result in results:
        opened += [result] if isinstance(result, Results) else _runs_in(Path(result))
    check_once(opened)
    return opened


def check_once(results: Sequence[Results]) -> None:
    """Raise `UserError` when a run is among *results* twice, maybe as a point of a sweep that is there too."""
    known: dict[Path, Path] = {}
    for result in results:
        folder = result.folder.resolve()
        if folder in known:
            raise UserError(f"{shown(known[folder])} is named twice, and its seeds would count twice: name it once")
        known[folder] = result.folder


def _runs_in(folder: Path) -> list[Results]:
    """The run, or those of all points of a finished sweep."""
    return load_points(folder, finished_sweep(folder)) if is_sweep(folder) else [load_results(folder)]
