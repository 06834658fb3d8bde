"""What a reader of a table could miss: results that are right and still do not mean what they seem to mean."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from fedsim.experiment.results import Results

__all__ = ["remarks"]

MANY = 10
"""One round in so many without any update is worth a remark."""


def remarks(results: Results) -> list[str]:
    """A sentence for each protocol and seed where no round ended, updates did not arrive, or training failed."""
    events = results.summary[results.summary["accounting"] == "event"]
    rounds = dict(list(results.rounds.groupby(["protocol", "seed"])))
    reasons = {(run["protocol"], run["seed"]): run.get("cut_short") for run in results.manifest["runs"]}
    return [
        f"{row.protocol} on seed {row.seed}: {remark}"
        for row in events.itertuples(index=False)
        for remark in _of_one(rounds.get((row.protocol, row.seed)), reasons.get((row.protocol, row.seed)))
    ]


def _of_one(rounds: pd.DataFrame | None, cut_short: str | None) -> Iterator[str]:
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
    if (rounds["loss"] == math.inf).any():
        first = rounds.loc[rounds["loss"] == math.inf, "round"].iloc[0]
        yield f"training diverged: the loss is no number from round {first}; try a smaller learning_rate"
        return
    scored = rounds.dropna(subset=["loss"])
    if len(scored) < 2:
        return
    first, last = scored.iloc[0], scored.iloc[-1]
    if last["loss"] > first["loss"] and not last["accuracy"] > first["accuracy"]:
        change = f"loss {first['loss']:.3g} -> {last['loss']:.3g}"
        yield f"the model got worse with training ({change}); try a smaller learning_rate"
