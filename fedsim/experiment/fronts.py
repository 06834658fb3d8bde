"""Which rows of a comparison are worth having: the Pareto fronts of accuracy against time, and against bytes."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from fedsim.metrics.pareto import pareto_front

__all__ = ["FRONTS", "mark_fronts"]

FRONTS = {"front_time": "sim_time_s", "front_bytes": "transfer_bytes"}
"""Columns of `fedsim.compare`, and the cost that each sets against the score."""


def mark_fronts(comparison: pd.DataFrame) -> pd.DataFrame:
    """*comparison*, a table of `fedsim.compare`, with the columns of `FRONTS`: whether a row is on that front.

    A row is on a front if no other row has both a better or equal score and a lower or equal cost, and one of them not
    equal. The score is the final accuracy, and the RMSE (the smaller the better) where no row has an accuracy. All rows
    count together, of all runs, but closed forms are left out, as they count costs otherwise. So is a row of which a
    seed has no score or no cost: its mean would be one of the better seeds.

    The front is one of means over seeds. It does not tell whether points that lie close to each other really differ.
    """
    score = "rmse" if comparison["final_accuracy_mean"].isna().all() else "final_accuracy"
    events = comparison["accounting"] == "event"
    marked = {}
    for column, cost in FRONTS.items():
        complete = events & (comparison[f"{score}_n"] == comparison["n"]) & (comparison[f"{cost}_n"] == comparison["n"])
        points = comparison[[f"{score}_mean", f"{cost}_mean"]].where(complete, math.nan)
        marked[column] = pareto_front(points.to_numpy(dtype=np.float64), (score == "final_accuracy", False))
    return comparison.assign(**marked)
