"""What a run counts and what it shows of that: tables that agree, and keys that do not depend on the choice."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from digit_runs import scenario

from fedsim.errors import UserError
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.metrics.confusion import false_alarms, macro_f1, missed_faults, recall

EVALUATED = {"on": ["global", "own"], "every": 2}
CHOSEN = {"metrics": ["recall", "macro_f1", "missed_faults", "false_alarms"], "sound_class": "3"}
SMALL = {"data.client_test_fraction": 0.2, "seeds": [1, 2]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs on one store: one that has chosen nothing, and then one with metrics."""
    place = tmp_path_factory.mktemp("runs")
    options = {"store": place / "store", "workers": 1}
    run(scenario({**SMALL, "evaluate": EVALUATED}), out=place / "plain", **options)
    run(scenario({**SMALL, "evaluate": EVALUATED | CHOSEN}), out=place / "chosen", **options)
    return place / "plain", place / "chosen"


def matrix(rows: pd.DataFrame) -> np.ndarray:
    counts = np.zeros((10, 10), np.int64)
    for row in rows.itertuples():
        counts[int(row.true), int(row.predicted)] += row.count_
    return counts


def test_columns_follow_from_the_counts_of_the_last_evaluation(folders: tuple[Path, Path]) -> None:
    results = Results(folders[1])
    last = results.rounds.groupby("seed").last()
    for (seed, test_set), rows in results.confusion.rename(columns={"count": "count_"}).groupby(["seed", "test_set"]):
        counts, ending = matrix(rows), "" if test_set == "global" else f"_{test_set}"
        row = last.loc[seed]
        assert row[f"accuracy{ending}"] == pytest.approx(counts.trace() / counts.sum(), abs=1e-12)
        assert row[f"macro_f1{ending}"] == macro_f1(counts)
        assert [row[f"recall_{digit}{ending}"] for digit in range(10)] == recall(counts).tolist()
        assert row[f"false_alarms{ending}"] == false_alarms(counts, 3)
        assert row[f"missed_faults{ending}"] == missed_faults(counts, 3)
        summary = results.summary.set_index("seed").loc[seed]
        assert summary[f"macro_f1{ending}"] == pytest.approx(row[f"macro_f1{ending}"])
    assert set(results.confusion["test_set"]) == {"global", "own"}
    assert results.rounds["macro_f1"].isna().tolist() == [True, False, False] * 2, "as accuracies are"


def test_to_choose_metrics_trains_nothing_again_and_counts_the_same(folders: tuple[Path, Path]) -> None:
    plain, chosen = (Results(folder) for folder in folders)
    lines = [path.read_text().count('"computed"') for path in (folders[0].parent / "store" / "ledger").iterdir()]
    assert sorted(lines)[0] == 0 < sorted(lines)[1]
    assert chosen.confusion.to_dict() == plain.confusion.to_dict()
    names = [*plain.rounds]
    assert chosen.rounds[names].equals(plain.rounds) and set(chosen.rounds) > set(names)
    assert not any(name.startswith(("recall", "macro")) for name in names)


def test_errors_of_values_are_in_their_unit_without_being_asked_for(tmp_path: Path) -> None:
    """Lives of 60 to 65 cycles, of which models know nothing: they begin near 0. Newcomers' errors are in it too."""
    rows = [f"{(number % 7) / 7},{60 + number % 6}" for number in range(120)]
    (tmp_path / "lives.csv").write_text("\n".join(["wear,life", *rows]) + "\n")
    data = {"name": "csv", "path": str(tmp_path / "lives.csv"), "target": "life", "task": "regression"}
    changes = {
        "data": data | {"unit": "cycles", "client_test_fraction": 0.2},
        **{"topology.devices": 4, "stop.rounds": 1, "training.learning_rate": 1e-9},
        **{"evaluate": {"on": ["global", "own"]}, "newcomers": {"clients": 1, "epochs": 1}},
    }
    changes["protocols"] = [{"name": "fedavg", "fraction": 0.5}]
    results = run(scenario(changes), out=tmp_path / "run", workers=1)
    (row,) = results.summary.to_dict("records")
    assert 55 < row["rmse_cycles"] < 65 and row["rmse_cycles"] == row["rmse"] == results.rounds["rmse_cycles"][0]
    assert row["rmse_cycles_own"] == pytest.approx(row["rmse_own"])
    assert 55 < row["newcomers_rmse_cycles"] == row["newcomers_rmse"]
    assert "phm08" not in row and not (results.folder / "confusion.csv").exists()
    with pytest.raises(UserError, match=r"^evaluate\.metrics: 'recall' is of classes, .*choose rmse_cycles or phm08"):
        run(scenario({**changes, "evaluate": {"metrics": ["recall"]}}), out=tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    asked = {**changes, "evaluate": {"on": ["global"], "metrics": ["phm08"]}}
    results = run(scenario(asked), out=tmp_path / "asked", workers=1)
    assert 24 * math.expm1(55 / 13) < results.summary["phm08"][0] < 24 * math.expm1(65 / 13), "of 24 tests"
    assert "rmse_cycles" not in results.summary
