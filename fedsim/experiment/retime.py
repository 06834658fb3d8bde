"""Re-timing: what a finished run has learned, on another network, device or stop rule, in seconds.

The clock runs from zero in the changed scenario, and every number of a model that it asks for is read from the store of
the run. The first one that is not there is a refusal: something else would have been trained. Nothing is written before
all is found, and nothing ever into the original's folder or store.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fedsim import registry
from fedsim.errors import UserError
from fedsim.experiment.command_to_resume import command_to_resume
from fedsim.experiment.gc_policy import rare_collections, set_aside
from fedsim.experiment.learners import graph_learner
from fedsim.experiment.manifest import NO_RUN, peak_memory_bytes, retimed_manifest, trainer_of
from fedsim.experiment.observer import Observer
from fedsim.experiment.one_run import run_one
from fedsim.experiment.progress.surroundings import display_for
from fedsim.experiment.remarks_after import remarks as remarks_after
from fedsim.experiment.remarks_before import remarks_before, remarks_on_data
from fedsim.experiment.result_tables import ResultTables
from fedsim.experiment.results import Results, load_results
from fedsim.experiment.run_folder import RunFolder
from fedsim.experiment.telling import tell_of, warn_of
from fedsim.experiment.validate import validate
from fedsim.experiment.why_not_retimed import Refusals, why_not_at_all
from fedsim.files import is_inside, shown
from fedsim.learning.graph import Graph, Handle
from fedsim.learning.learner import Learner
from fedsim.learning.read_only_store import ReadOnlyStore
from fedsim.learning.recalling import Recaller
from fedsim.learning.training import TrainingSettings
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials, gather_materials
from fedsim.scenario.load import load
from fedsim.scenario.scalars import printable
from fedsim.scenario.schema import Scenario

__all__ = ["retime"]

SUFFIX = "-retimed"
LONGEST = 80
"""Characters in a scenario's name."""


def retime(
    run: Results | Path | str,
    overrides: Sequence[str] = (),
    *,
    out: Path | str | None = None,
    progress: bool | None = None,
    observer: Observer | None = None,
) -> Results:
    """Time a finished *run* anew with ``key.path=value`` *overrides*, into the folder *out*; returns its results.

    They are those that a full run of the changed scenario would come to, and nothing is trained. Any key may change
    whose change leaves what is trained as it was; the first training or evaluation that the run has not made is a
    refusal that names it. The name of the changed scenario ends with ``-retimed`` unless it is among the *overrides*,
    and *out* is ``runs/`` and that name when it is None. A finished re-timing of the same scenario in that folder is
    returned as it is. *progress*, *observer* and remarks are as in `fedsim.run`.

    Raises `UserError` when anything asked for is wrong, or refused; nothing has been written then.
    """
    if observer is not None and progress is not None:
        raise UserError("progress and observer cannot both be given: an observer takes the place of the display")
    began_s = time.monotonic()
    original = load_results(run.folder if isinstance(run, Results) else run)
    scenario = _named(load(original.folder / "scenario.yaml", overrides=overrides), overrides)
    path = Path("runs") / scenario.name if out is None else Path(out)
    place = Path(os.path.realpath(original.folder / original.manifest.get("store", "store")))
    if is_inside(path, original.folder) or is_inside(path / "manifest.json", place):
        problem = f"{shown(path)} is inside the run {shown(original.folder)}, or its store"
        raise UserError(f"{problem}; choose another folder with --out")
    folder = RunFolder(path, scenario, resume=True)
    if folder.finished:
        return Results(path)
    _check_that_it_is_no_run(folder)
    if why := why_not_at_all(original, scenario, overrides, path):
        raise UserError(why)
    remarks: list[str] = []
    store = ReadOnlyStore(place, trainer_of(original.manifest).get("run", NO_RUN), remarks.append)
    with set_aside():
        materials = validate(scenario, lambda first, _: remarks.extend(remarks_before(scenario, first)))
        remarks += remarks_on_data(scenario, materials)
        gc.collect()  # the world that was checked is full of cycles
    if observer is None:
        warn_of(remarks)
    with (
        display_for(progress) if observer is None else nullcontext(observer) as watching,
        tempfile.TemporaryDirectory(prefix="fedsim-") as scratch,
        ResultTables(scenario, folder, scratch=Path(scratch)) as tables,
    ):
        tell_of(remarks, observer or Observer())
        watching.tell(f"Nothing is trained: what was learned is read from {shown(original.folder)}")
        recall = _Recall(original, store, Refusals(original, scenario, overrides, store, path))
        rows = _run_all(scenario, materials, recall, tables, watching)
        later = _without_models(rows, original)
        tell_of(later, observer or Observer())
        with folder:
            if not folder.finished:  # somebody else may have been faster
                _check_that_it_is_no_run(folder)
                folder.manifest = retimed_manifest(scenario, materials, original, place, folder)
                folder.manifest["remarks"] += map(printable, [*remarks, *later])
                folder.manifest["real_seconds"] = time.monotonic() - began_s
                later += _keep(folder, rows, tables)
    if observer is None:
        warn_of(later)
    return Results(path)


def _run_all(
    scenario: Scenario, materials: Materials, recall: _Recall, tables: ResultTables, observer: Observer
) -> list[dict[str, Any]]:
    """Run the clock of every protocol on every seed; *materials* are those of the first one. Returns their rows."""
    rows: list[dict[str, Any]] = []
    with rare_collections():
        for seed in scenario.seeds:
            if seed != materials.seed:
                materials = gather_materials(scenario, seed)
            for protocol in scenario.protocols:
                with set_aside():
                    rows.append(run_one(scenario, protocol, materials, recall.learner_for, tables, len(rows), observer))
                    gc.collect()  # a finished world is full of cycles
    return rows


def _keep(folder: RunFolder, rows: Sequence[dict[str, Any]], tables: ResultTables) -> list[str]:
    """Write all into *folder*; returns remarks on the results. Until it is finished it can only be made again."""
    manifest = folder.manifest
    manifest["peak_memory_bytes"] = peak_memory_bytes()
    folder.save_manifest()
    tables.save()
    tables.save_appended()
    manifest["runs"] = rows
    folder.save_manifest()
    on_results = remarks_after(Results(folder.path))
    manifest["remarks"] += map(printable, on_results)
    manifest["status"] = "finished"
    folder.save_manifest()
    return on_results


def _named(scenario: Scenario, overrides: Sequence[str]) -> Scenario:
    """The *scenario*, with a name of its own."""
    if scenario.name.endswith(SUFFIX) or any(each.partition("=")[0].strip() == "name" for each in overrides):
        return scenario
    return scenario.model_copy(update={"name": f"{scenario.name[: LONGEST - len(SUFFIX)]}{SUFFIX}"})


def _check_that_it_is_no_run(folder: RunFolder) -> None:
    """Raise `UserError` when there is a run in *folder* that is not finished: it is not to be lost."""
    if folder.manifest and "retimed_from" not in folder.manifest:
        command = command_to_resume(folder.path, folder.manifest)
        problem = f"the run in {shown(folder.path)} is not finished, and it trains; go on with: {command}"
        raise UserError(printable(f"{problem}, or choose another folder with --out"))


class _Recall:
    """Makes learners that only recall what the *original* has learned."""

    def __init__(self, original: Results, store: ReadOnlyStore, refusals: Refusals) -> None:
        self._family: str = original.manifest["numeric_family"]
        self._grouping = registry.load("executors", original.manifest["executor"]["name"]).chunks
        self._store = store
        self._refusals = refusals

    def learner_for(self, materials: Materials, protocol: Protocol, training: TrainingSettings) -> Learner:
        """One from its beginning."""

        def refusal(handle: Handle) -> UserError:
            return self._refusals.of(handle, protocol, materials)

        recaller = Recaller(self._grouping, self._store, refusal)
        return graph_learner(materials, protocol, training, Graph(self._family), recaller, self._store)


def _without_models(rows: Sequence[dict[str, Any]], original: Results) -> list[str]:
    """A remark for each of the *rows* of a manifest whose last model the *original* has not kept."""
    kept = {(row["protocol"], row["seed"]) for row in original.manifest["runs"] if row.get("final_weights")}
    return [
        f"{row['protocol']} on seed {row['seed']}: it ends with another model than the run that was trained, of which "
        "only the last one was kept, so there are no weights"
        for row in rows
        if row["rounds"] and not row["final_weights"] and (row["protocol"], row["seed"]) in kept
    ]
