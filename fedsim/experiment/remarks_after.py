"""What a reader of a table could miss: results that are right and still do not mean what they seem to mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from fedsim.experiment.results import Results
from fedsim.learning.divergence import why_it_ended
from fedsim.scenario.scalars import show

__all__ = ["remarks"]

LEARNING_RATES = ["training.learning_rate"]
"""The keys of learning rates, where a run folder does not tell."""
MANY = 10
"""One round in so many without any update is worth a remark."""


def remarks(results: Results) -> list[str]:
    """A sentence for each protocol and seed where no round ended, updates did not arrive, or training failed.

    Training has failed too where the last model takes everything for one class, which an accuracy may hide.

    And one for each protocol without any newcomer, and for each whose model diverged on some seeds only: a mean over
    seeds is then one of the others.
    """
    events = results.summary[results.summary["accounting"] == "event"]
    rounds = dict(list(results.rounds.groupby(["protocol", "seed"])))
    runs = {(run["protocol"], run["seed"]): run for run in results.manifest["runs"]}
    counted = results.confusion if (results.folder / "confusion.csv").exists() else pd.DataFrame()
    counts = dict(list(counted.groupby(["protocol", "seed"]))) if len(counted) else {}
    of_runs = [
        f"{row.protocol} on seed {row.seed}: {remark}"
        for row in events.itertuples(index=False)
        for remark in _of_one(
            rounds.get((row.protocol, row.seed)),
            runs.get((row.protocol, row.seed), {}),
            counts.get((row.protocol, row.seed)),
            results.manifest.get("classes"),
            leaves_out=getattr(row, "filters_share", 1.0) < 1,
        )
    ]
    return [*of_runs, *_without_newcomers(events), *_diverged_on_some(events, rounds)]


def _without_newcomers(events: pd.DataFrame) -> Iterator[str]:
    """A remark on each protocol that had seeds without any newcomer, though the scenario asks for newcomers."""
    if "newcomers" in events:
        for protocol, numbers in events.groupby("protocol", sort=False)["newcomers"]:
            if found := int((numbers == 0).sum()):
                yield (
                    f"{protocol}: no newcomer has trained on {found} of {len(numbers)} seeds; each client had been "
                    "asked in a round (newcomers.clients keeps some for the end), or could not be reached at the end"
                )


def _diverged_on_some(events: pd.DataFrame, rounds: Mapping[Any, pd.DataFrame]) -> list[str]:
    return [
        f"{protocol}: {found} of {seeds} seeds diverged; what they do not have is left out of its means"
        for protocol, seeds in events.groupby("protocol", sort=False).size().items()
        if 0 < (found := sum(diverged_at(run) is not None for (of, _), run in rounds.items() if of == protocol)) < seeds
    ]


def diverged_at(rounds: pd.DataFrame) -> int | None:
    """The round of one run, a part of `Results.rounds`, at which its model had diverged on a test set; None: never."""
    losses = [column for column in rounds if column == "loss" or str(column).startswith("loss_")]
    found = rounds.loc[(rounds[losses] == math.inf).any(axis=1), "round"]
    return None if found.empty else int(found.iloc[0])


def _of_one(
    rounds: pd.DataFrame | None,
    run: Mapping[str, Any],
    counts: pd.DataFrame | None,
    classes: int | None,
    *,
    leaves_out: bool,
) -> Iterator[str]:
    """Of one *run*, a row of the manifest, its *rounds*, and its *counts* of what was taken for what.

    *leaves_out*: whether clients send some filters only.
    """
    cut_short, learning_rates = run.get("cut_short"), run.get("learning_rates") or LEARNING_RATES
    if cut_short is not None:
        done = 0 if rounds is None else len(rounds)
        yield f"the run ended early, after {done} round{'' if done == 1 else 's'}: {cut_short}"
    if rounds is None:
        yield "no round ended before the run did, so there is nothing to compare"
        return
    in_vain = int((rounds["participants"] == 0).sum()) if "participants" in rounds else 0
    if in_vain == len(rounds):
        yield f"no update arrived in time in any of {in_vain} rounds, so the model was never trained"
    elif in_vain * MANY >= len(rounds):
        yield f"no update arrived in time in {in_vain} of {len(rounds)} rounds, which changed nothing"
    diverged = diverged_at(rounds)
    if diverged is not None:
        if cut_short != (why := why_it_ended(diverged, learning_rates)):
            yield why
        return
    scored = rounds.dropna(subset=["loss"])
    if scored.empty:
        return
    first, last = scored.iloc[0], scored.iloc[-1]
    advice = f"try {{}} {' or '.join(learning_rates)}"
    if leaves_out:
        advice = f"filters that nobody has sent yet are as they started, so go on for more rounds, or {advice}"
    if classes is not None and _is_far_above_chance(last["loss"], last["accuracy"], classes):
        yield (
            f"a loss of {last['loss']:.3g} (accuracy {last['accuracy']:.3g}) is far above ln {classes} = "
            f"{math.log(classes):.3g}, which guessing gives; {advice.format('a tenth of')}, and look "
            "whether labels and the scale of samples are right"
        )
    elif last["loss"] > first["loss"] and not last["accuracy"] > first["accuracy"]:
        change = f"loss {_two_losses(first['loss'], last['loss'])}"
        yield f"the model got worse with training ({change}); {advice.format('a smaller')}"
    if counts is not None and in_vain < len(rounds):
        yield from _of_one_class(counts, learning_rates)
    if last.get("phm08") == math.inf:
        yield (
            "its PHM08 score is too large for a number: a prediction is thousands of cycles too late, and the score "
            "grows exponentially with that; look at rmse_cycles"
        )


def _of_one_class(counts: pd.DataFrame, learning_rates: Sequence[str]) -> Iterator[str]:
    """A remark on a model that takes all samples of the first test set for one class, though they are of several."""
    of_first = counts[counts["test_set"] == counts["test_set"].iloc[0]]
    if of_first["predicted_index"].nunique() > 1 or of_first["true_index"].nunique() == 1:
        return
    name, samples = of_first["predicted"].iloc[0], int(of_first["count"].sum())
    share = int(of_first.loc[of_first["true_index"] == of_first["predicted_index"], "count"].sum()) / samples
    yield (
        f"the model predicts {show(name)} only, so its accuracy is the share of that class among {samples:,} test "
        f"samples, {share:.3g}; go on for more rounds, try another {' or '.join(learning_rates)}, or look at how the "
        "model normalises: statistics of batches with few classes do that, and normalisation: group has none"
    )


def _two_losses(first: float, last: float) -> str:
    """Both with three digits, or as many more as it takes to tell them apart.

    >>> _two_losses(2.3, 140.0), _two_losses(2.3021, 2.3047)
    ('2.3 -> 140', '2.302 -> 2.305')
    """
    pairs = (f"{first:.{digits}g} -> {last:.{digits}g}" for digits in range(3, 18))
    return next(pair for pair in pairs if len(set(pair.split(" -> "))) == 2)


def _is_far_above_chance(loss: float, accuracy: float, classes: int) -> bool:
    """Whether a loss is ten times that of guessing, ln C, or twice with an accuracy hardly above that of guessing, 1/C.

    A model that has learned alike data too well may have three times ln C, and is often right all the same.
    """
    chance = 1 / classes
    is_guess = accuracy < chance + (1 - chance) / 10
    return loss > (2 if is_guess else 10) * math.log(classes)
