"""Running a scenario: every protocol on every seed, one after the other, each from time zero.

What another run trains at this moment, into the same store, comes later. A run that was interrupted is run again from
time zero as well: the clock is cheap, and what was learned is found in the store. A finished run is not run again.
"""

from __future__ import annotations

import gc
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fedsim.errors import UserError
from fedsim.experiment.gc_policy import rare_collections, set_aside
from fedsim.experiment.host import CHECKPOINT_INTERVAL_S, Host, HostOptions, Learners, host_for
from fedsim.experiment.manifest import new_manifest, take_peaks
from fedsim.experiment.memory import check_memory
from fedsim.experiment.observer import Observer
from fedsim.experiment.one_run import run_one
from fedsim.experiment.progress.surroundings import display_for
from fedsim.experiment.remarks_after import remarks as remarks_after
from fedsim.experiment.remarks_before import remarks_before, remarks_on_data
from fedsim.experiment.result_tables import ResultTables
from fedsim.experiment.results import Results
from fedsim.experiment.run_folder import RunFolder
from fedsim.experiment.telling import tell_of, warn_of
from fedsim.experiment.turns import Turns
from fedsim.experiment.validate import validate
from fedsim.learning.claims import TrainedElsewhere
from fedsim.learning.store_folder import check_store
from fedsim.scenario.build import Materials, gather_materials
from fedsim.scenario.scalars import printable, show
from fedsim.scenario.schema import Scenario

__all__ = ["run", "run_with"]


def run(
    scenario: Scenario,
    *,
    out: Path | str | None = None,
    store: Path | str | None = None,
    resume: bool = False,
    executor: str = "auto",
    workers: int | None = None,
    torch_device: str = "cpu",
    precision: str = "float32",
    checkpoint_interval_s: float = CHECKPOINT_INTERVAL_S,
    progress: bool | None = None,
    observer: Observer | None = None,
) -> Results:
    """Run *scenario* into the folder *out* (default ``runs/<name>``) and return its results.

    A finished run of the same scenario in that folder is returned as it is: nothing runs, and no warning repeats its
    remarks, which are in `Results.remarks`. An unfinished one needs *resume*. *store* is where learned values are kept
    (default: in the folder); a run that goes on needs it again when that is elsewhere. *executor*, *workers* (None: one
    for each core, where that is of use), *torch_device* and *precision* say what trains here.

    *progress* shows how far it has come: bars in a notebook or on a terminal. None shows nothing elsewhere, such as on
    a pipe; True writes lines there, to standard error; False shows nothing at all. Each remark is a warning of the
    category `fedsim.Remark`: those about the scenario before anything is written, all others at the end. An *observer*
    hears everything in place of that, remarks on the results left out, and there are no warnings then.

    Raises `UserError` when anything asked for is wrong; nothing has been written then.
    """
    options = HostOptions(
        executor=executor,
        workers=workers,
        torch_device=torch_device,
        precision=precision,
        checkpoint_interval_s=checkpoint_interval_s,
    )
    return run_with(options, scenario, out=out, store=store, resume=resume, progress=progress, observer=observer)


def run_with(
    options: HostOptions,
    scenario: Scenario,
    *,
    out: Path | str | None = None,
    store: Path | str | None = None,
    resume: bool = False,
    progress: bool | None = None,
    observer: Observer | None = None,
) -> Results:
    """As `run`, which calls it: with *options* of this machine in one piece.

    Raises `Paused` where the *observer* pauses the run.
    """
    if observer is not None and progress is not None:
        raise UserError("progress and observer cannot both be given: an observer takes the place of the display")
    if not isinstance(scenario, Scenario):
        raise UserError(f"a run needs a scenario, and not {show(scenario)}; fedsim.load(path) reads one from a file")
    scenario = scenario.model_copy(update={"sweep": None})
    path = Path("runs") / scenario.name if out is None else Path(out)
    folder = RunFolder(path, scenario, resume=resume)
    asked = None if store is None else Path(store)
    place = folder.store(asked)
    if folder.finished:
        return Results(path)
    check_store(place)
    remarks: list[str] = []
    with set_aside():  # first, as a host takes a while to load
        materials = validate(scenario, lambda first, _: remarks.extend(remarks_before(scenario, first)))
        remarks += remarks_on_data(scenario, materials)
        gc.collect()  # the world that was checked is full of cycles
    protocols = materials.by_protocol(scenario.protocols)
    host = host_for(options, materials.tables, learn=scenario.learn, protocols=protocols)
    if host.training is not None:
        training = host.training
        check_memory(
            scenario, materials, executor=training.choice.name, workers=training.workers, precision=options.precision
        )
    known = [*remarks, *host.remarks]
    if observer is None:
        warn_of(known, frames=2)
    later: list[str] = []
    with folder:
        if not folder.finished:  # somebody else may have been faster
            place = folder.store(asked)
            folder.manifest = new_manifest(scenario, materials, host, place, folder)
            folder.manifest["remarks"] += map(printable, known)
            with display_for(progress) if observer is None else nullcontext(observer) as watching:
                hears_remarks = observer or Observer()
                tell_of(remarks, hears_remarks)
                if host.training is not None:
                    watching.tell(f"Executor: {host.training}")
                tell_of(host.remarks, hears_remarks)
                _run_all(scenario, materials, host, place, folder, watching, hears_remarks)
            later = folder.manifest["remarks"][len(known) :]
    if observer is None:
        warn_of(later, frames=2)
    return Results(path)


def _run_all(
    scenario: Scenario,
    materials: Materials,
    host: Host,
    store: Path,
    folder: RunFolder,
    observer: Observer,
    hears_remarks: Observer,
) -> None:
    """Every protocol on every seed; *materials* are those of the first seed."""

    def remark(text: str) -> None:
        folder.manifest["remarks"].append(printable(text))
        tell_of([text], hears_remarks)

    began_s = time.monotonic()
    folder.save_manifest()
    before_s = folder.manifest["real_seconds"]
    with (
        rare_collections(),
        Learners(host, store, folder.manifest["run"], remark) as learners,
        ResultTables(scenario, folder) as tables,
    ):
        labels = [(seed, protocol) for seed in scenario.seeds for protocol in scenario.protocols]
        rows: dict[int, dict[str, Any]] = {}
        turns = Turns(len(labels), observer.waits)
        for position in turns:
            seed, protocol = labels[position]
            if seed != materials.seed:
                materials = gather_materials(scenario, seed)
            learners.patient = turns.patient
            with set_aside():
                try:
                    row = run_one(scenario, protocol, materials, learners.make, tables, position, observer)
                except TrainedElsewhere as elsewhere:
                    turns.put_off(position, str(elsewhere))
                    observer.put_off(protocol, seed)
                else:
                    rows[position] = row
                    tables.save()
                    folder.manifest["runs"] = [row for _, row in sorted(rows.items())]
                    folder.manifest["real_seconds"] = before_s + time.monotonic() - began_s
                    take_peaks(folder.manifest)
                    folder.save_manifest()
                gc.collect()  # a finished world is full of cycles
    take_peaks(folder.manifest)  # again, now that the last workers have ended and theirs is known
    folder.manifest["remarks"] += map(printable, remarks_after(Results(folder.path)))
    folder.manifest["status"] = "finished"
    folder.save_manifest()
