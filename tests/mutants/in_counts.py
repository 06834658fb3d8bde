"""Faults in what is counted of predictions, in the formulas behind it, and in which of them are shown."""

from __future__ import annotations

from mutants.fault import Fault

EVALUATED = "fedsim/learning/executors/evaluated.py"
CONFUSION = "fedsim/metrics/confusion.py"
CHOSEN = "fedsim/metrics/chosen.py"
SPREAD = "fedsim/learning/spread.py"
FITTING = "fedsim/scenario/chosen_metrics.py"
TABLES = "fedsim/viz/chosen_tables.py"
TEST_EVALUATED = "tests/learning/test_evaluated.py"
TEST_SERIAL = "tests/learning/test_serial_executor.py"
TEST_CONFUSION = "tests/metrics/test_confusion.py"
TEST_FITTING = "tests/scenario/test_chosen_metrics.py"
FIGURES = "fedsim/viz/confusion_figures.py"
TEST_FIGURES = "tests/viz/test_confusion_figures.py"
TEST_CELLS = "tests/viz/test_comparison_cells.py"

FAULTS = (
    Fault(
        "true and predicted classes change places",
        EVALUATED,
        "(true * classes + predicted)",
        "(predicted * classes + true)",
        (TEST_EVALUATED,),
    ),
    Fault(
        "the last pair of classes is not counted",
        EVALUATED,
        "append=len(pairs)",
        "append=len(pairs) - 1",
        (TEST_EVALUATED,),
    ),
    Fault(
        "the classes of one client alone are counted",
        EVALUATED,
        "for test in tests), strict=True)",
        "for test in tests[:1]), strict=True)",
        (TEST_EVALUATED,),
    ),
    Fault("early and late cost the same", EVALUATED, "LATE_CYCLES = 10.0", "LATE_CYCLES = 13.0", (TEST_EVALUATED,)),
    Fault("early is late", EVALUATED, "np.where(late < 0", "np.where(late > 0", (TEST_EVALUATED,)),
    Fault("a right prediction costs 1", EVALUATED, "np.expm1(", "np.exp(", (TEST_EVALUATED,)),
    Fault(
        "the score is of shares, not of cycles",
        EVALUATED,
        "(target.scale * values.astype(np.float64)",
        "(values.astype(np.float64)",
        (
            f"{TEST_EVALUATED}::test_errors_of_clients_are_pooled_and_scores_add_up",
            f"{TEST_SERIAL}::test_numbers_are_learned_by_the_squared_error_and_scored_by_its_root",
        ),
        by_each=True,
    ),
    Fault(
        "a model that has diverged is counted",
        EVALUATED,
        "None if diverged(whole) else confusion(",
        "confusion(",
        (TEST_EVALUATED,),
    ),
    Fault(
        "errors of clients are averaged, not pooled",
        SPREAD,
        "score[metric] ** 2 for score in scores) / samples)",
        "score[metric] for score in scores) ** 2 / samples**2)",
        (TEST_EVALUATED,),
    ),
    Fault(
        "the counts of the last client hide those of the others",
        SPREAD,
        "total.get((true, predicted), 0) + number",
        "number",
        (TEST_EVALUATED,),
    ),
    Fault(
        "a sum of scores that is too large for a number breaks",
        SPREAD,
        "    try:\n        return math.fsum(values)\n    except OverflowError:\n        return math.inf\n",
        "    return math.fsum(values)\n",
        (TEST_EVALUATED,),
    ),
    Fault(
        "recall is precision",
        CONFUSION,
        "of_class = counts.sum(axis=1)",
        "of_class = counts.sum(axis=0)",
        (TEST_CONFUSION,),
    ),
    Fault(
        "classes that are nowhere take part in the mean",
        CONFUSION,
        "np.mean(2 * counts.diagonal()[there] / both[there])",
        "np.sum(2 * counts.diagonal()[there] / both[there]) / len(counts)",
        (TEST_CONFUSION,),
    ),
    Fault(
        "a fault that is taken for another one is missed",
        CONFUSION,
        "(int(counts[:, sound].sum()) - int(counts[sound, sound])) / faulty",
        "(faulty - int(np.delete(counts.diagonal(), sound).sum())) / faulty",
        (TEST_CONFUSION,),
    ),
    Fault(
        "false alarms are a share of all samples",
        CONFUSION,
        "int(counts[sound, sound])) / samples if",
        "int(counts[sound, sound])) / int(counts.sum()) if",
        (TEST_CONFUSION,),
    ),
    Fault(
        "an error in a unit is no column of a chosen metric",
        CHOSEN,
        "None if column.unit in NO_UNITS else column",
        "None if column.unit else column",
        (TEST_CONFUSION,),
    ),
    Fault(
        "the word of a scenario on what is sound is passed over",
        FITTING,
        "if (name := evaluate.sound_class) is None:",
        "if (name := evaluate.sound_class) is None or dataset.sound_class is not None:",
        (TEST_FITTING,),
    ),
    Fault(
        "the score of remaining cycles is shown of millimetres",
        FITTING,
        'or (name == "phm08" and target.unit != CYCLES)',
        "",
        (TEST_FITTING,),
    ),
    Fault(
        "a figure has shares of what was predicted",
        FIGURES,
        "of_row = counts.sum(axis=1, keepdims=True)",
        "of_row = counts.sum(axis=0, keepdims=True)",
        (TEST_FIGURES,),
    ),
    Fault(
        "a figure shows the last seed alone",
        FIGURES,
        'np.add.at(counts, (rows, columns), table["count"].to_numpy(np.int64))',
        'counts[rows, columns] = table["count"].to_numpy(np.int64)',
        (TEST_FIGURES,),
    ),
    Fault(
        "what was never trained is told to predict one class",
        "fedsim/experiment/remarks_after.py",
        "if counts is not None and in_vain < len(rounds):",
        "if counts is not None:",
        ("tests/experiment/test_remarks_after.py",),
    ),
    Fault(
        "newcomers' errors have no unit",
        "fedsim/protocols/newcomers.py",
        "*([target.rmse] if target else [])",
        "",
        ("tests/experiment/test_counts_of_runs.py",),
    ),
    Fault(
        "the unit of values is asked of nobody",
        "fedsim/learning/graph_learner.py",
        "on, target=self._dataset.target)",
        "on)",
        ("tests/experiment/test_counts_of_runs.py",),
    ),
    Fault(
        "an error that only some have in a unit is left out as a number",
        TABLES,
        ' and not ((comparison[bare] > 0) & (comparison[f"{name}_n"] == 0)).any()',
        "",
        (TEST_CELLS,),
    ),
)
