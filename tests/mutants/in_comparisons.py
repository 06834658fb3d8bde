"""Faults in comparisons: budgets, intervals, paired differences."""

from __future__ import annotations

from mutants.fault import Fault

BUDGETS = "fedsim/experiment/compare.py"
COMPARE = "fedsim/experiment/compare.py"
INTERVALS = "fedsim/metrics/intervals.py"
TEST_BUDGETS = "tests/experiment/test_budgets.py"
TEST_COMPARE = "tests/experiment/test_compare.py"
TEST_INTERVALS = "tests/experiment/test_intervals.py"

FAULTS = (
    Fault(
        "what is exactly spent is too much",
        BUDGETS,
        "affordable = run[run[at[0]] <= at[1]]",
        "affordable = run[run[at[0]] < at[1]]",
        (TEST_BUDGETS,),
    ),
    Fault(
        "costs of rounds after the last evaluation",
        BUDGETS,
        'until_then: pd.DataFrame = affordable[affordable["round"] <= last]',
        "until_then = affordable",
        (TEST_BUDGETS,),
    ),
    Fault(
        "runs without any round are left out",
        COMPARE,
        'known.merge(found, on=run, how="left")',
        'known.merge(found, on=run, how="inner")',
        (TEST_COMPARE,),
    ),
    Fault(
        "the quantile of the normal distribution",
        INTERVALS,
        "stdtrit(n - 1, (1 + CONFIDENCE) / 2)",
        "stdtrit(1e9, (1 + CONFIDENCE) / 2)",
        (TEST_INTERVALS,),
    ),
    Fault(
        "differences of means that are not paired",
        COMPARE,
        "half_width(differences), len(differences)",
        "half_width(values[one].to_list()), len(differences)",
        (TEST_INTERVALS,),
    ),
    Fault(
        "a difference as large as its interval is one",
        COMPARE,
        "if not abs(self.mean) > self.half_width:",
        "if not abs(self.mean) >= self.half_width:",
        (TEST_INTERVALS,),
    ),
    Fault(
        "one seed decides",
        COMPARE,
        "if not abs(self.mean) > self.half_width:",
        "if abs(self.mean) <= self.half_width:",
        (TEST_INTERVALS,),
    ),
)
