"""Advice from a scenario: the search in its folder, and what it leaves there."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedsim.experiment.advise.answer import Answer
from fedsim.experiment.advise.candidates import candidates_of
from fedsim.experiment.advise.command import command_for, spelt
from fedsim.experiment.advise.question import Question, ask
from fedsim.experiment.advise.runs import FORMAT, Runs, SearchFolder
from fedsim.experiment.advise.search import Trial, search
from fedsim.experiment.compare import Spent
from fedsim.experiment.host import CHECKPOINT_INTERVAL_S, HostOptions
from fedsim.experiment.sweep.pools.choice import pool_for
from fedsim.experiment.sweep.variation import Variation, from_mapping, from_settings
from fedsim.experiment.validate import validate
from fedsim.experiment.varied_keys import short_keys
from fedsim.files import shown, write_atomically
from fedsim.learning.store_folder import check_store
from fedsim.scenario.load import Varied, load, load_varied

__all__ = ["Advice", "advise", "advise_variation"]


@dataclass(frozen=True, repr=False)
class Advice:
    """What a search has found."""

    folder: Path
    """With ``advice.json``, ``advice.csv`` and the runs; and the store, unless that is elsewhere."""
    target: float
    within: Mapping[Spent, float]
    """The budgets."""
    by: Spent
    """The cost that decides."""
    keys: tuple[str, ...]
    """The varied keys, as the table has them."""
    table: pd.DataFrame
    """A row for each candidate; see `fedsim.experiment.advise.answer.Answer.table`."""
    verdict: str
    """In sentences, with no more than the intervals allow."""
    command: str | None
    """``fedsim run`` of the candidate that the verdict begins with; None where none reaches the target."""

    def __repr__(self) -> str:
        return f"Advice in {shown(self.folder)}: {self.verdict}"


def advise(
    path: Path | str,
    *,
    target: float,
    within: Mapping[str, float] | None = None,
    by: str | None = None,
    vary: Mapping[str, Sequence[object]] | None = None,
    seeds: Sequence[int] | None = None,
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
) -> Advice:
    """Which protocol of the scenario in *path*, at which values, reaches the accuracy *target* within budgets?

    *within* has the budgets, ``{"sim_time_s": 28800, "transfer_bytes": 1e9}``: columns of a table of rounds, and
    amounts. Without it they are those of the scenario's ``stop``. *by* is the cost that decides: the first budget,
    without it.
    *vary* has the keys and their values, as for `fedsim.sweep`; without it they are those of the scenario's section
    ``sweep``, and without that only its protocols are compared. *seeds* take the place of the scenario's.

    *out* is ``runs/<name>-advice`` without it. All other options are those of `fedsim.sweep`. The same search again, or
    one that was interrupted, trains only what is missing.

    Raises `UserError` when anything asked for is wrong; nothing has been written then. Also, as `RunFailedError`, when
    a run of the search fails.
    """
    overrides = [*overrides, *([] if seeds is None else [f"seeds={list(seeds)}"])]
    return advise_variation(
        Path(path),
        None if vary is None else from_mapping(vary),
        target=target,
        within=within or {},
        by=by,
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


def advise_variation(
    path: Path,
    variation: Variation | None,
    *,
    target: float,
    within: Mapping[str, float],
    by: str | None,
    overrides: Sequence[str],
    out: Path | str | None,
    store: Path | str | None,
    pool: str,
    pool_size: int | None,
    options: HostOptions,
    progress: bool | None,
) -> Advice:
    """As `advise`, with what is varied worked out; None for what the scenario says."""
    base = load(path, overrides=overrides)
    if variation is None and base.sweep is not None:
        variation = from_settings(base.sweep)
    question = ask(target, within, by, base)
    candidates = candidates_of(path, overrides, variation, question)
    _check(path, overrides, variation, question)
    folder = SearchFolder(
        Path("runs") / f"{base.name}-advice" if out is None else Path(out), None if store is None else Path(store)
    )
    check_store(folder.store)
    open_pool, size = pool_for(pool, pool_size, options, len(candidates))
    keys = tuple(short_keys(variation.keys)) if variation else ()
    with folder:
        _save(folder, question, base.seeds, status="running")
        each = 1 if pool == "ray" else None
        with Runs(path, overrides, folder, options, open_pool, size=size, each=each, progress=progress) as runs:
            trials = search(candidates, question, base.seeds, runs)
        answer = Answer(question, trials, base.seeds, keys)
        command = None if answer.best is None else _command(answer.best, path, overrides, base.seeds, options, folder)
        advice = Advice(
            folder.path,
            question.target,
            question.within,
            question.by,
            keys,
            answer.table,
            " ".join(answer.verdict),
            command,
        )
        folder.save_table(advice.table)
        _save(folder, question, base.seeds, status="finished", verdict=advice.verdict, command=command)
    return advice


def _check(path: Path, overrides: Sequence[str], variation: Variation | None, question: Question) -> None:
    """Build worlds of some points: every value of every key is in one of them, with the target and the budgets."""
    stop = {**question.stop, "target_accuracy": question.target}
    said = ", ".join(f"--within {column}={most:g}" for column, most in question.within.items())
    end = Varied("stop", stop, f"--target {question.target:g}, {said}")
    points = [variation.point(row) for row in variation.sample] if variation else [[]]
    for scenario in load_varied(path, [[*point, end] for point in points], overrides=overrides):
        validate(scenario.model_copy(update={"sweep": None}), every_seed=False)
        gc.collect()  # a world is full of cycles


def _command(
    best: Trial,
    path: Path,
    overrides: Sequence[str],
    seeds: Sequence[int],
    options: HostOptions,
    folder: SearchFolder,
) -> str:
    """The candidate on all seeds: it ends where it reached the target in the search, or else with the budgets."""
    candidate, question = best.candidate, best.question
    stop = {**question.stop, "target_accuracy": question.target}
    settings = [one for one in overrides if one.partition("=")[0].strip() != "seeds"]
    settings += [f"{value.key}={spelt(value.value)}" for value in candidate.values]
    settings += [f"{candidate.own_stop}=null"] if candidate.own_stop else []
    settings.append(f"stop={spelt(stop)}")
    out = folder.path / f"run-{candidate.key}"
    return command_for(candidate.protocol, path, settings, seeds, options=options, store=folder.store, out=out)


def _save(folder: SearchFolder, question: Question, seeds: Sequence[int], **more: Any) -> None:
    """Write down what is searched for, and what was found."""
    content = {
        "format": FORMAT,
        "target": question.target,
        "within": dict(question.within),
        "by": question.by,
        "seeds": list(seeds),
        **more,
    }
    write_atomically(folder.path / folder.manifest, (json.dumps(content, indent=1) + "\n").encode())
