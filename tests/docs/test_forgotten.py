"""docs/claims/forgotten.py tells what was gained or lost since a round, paired by seed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

EARLIER = {"kept": {1: 0.50, 2: 0.60, 3: 0.70}, "lost": {1: 0.50, 2: 0.60, 3: 0.70}}
LATER = {"kept": {1: 0.55, 2: 0.66, 3: 0.75}, "lost": {1: 0.40, 2: 0.48, 3: 0.58}}


@pytest.fixture(scope="module")
def forgotten() -> ModuleType:
    sys.path.append(str(Path(__file__).parents[2] / "docs/claims"))
    return importlib.import_module("forgotten")


@pytest.fixture(autouse=True)
def one_later_round(forgotten: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgotten, "LATER", (30,))


def passed() -> pd.DataFrame:
    """Accuracy on passed batches after rounds 21 and 30; on pooled tests all protocols are at a half."""
    rows = [
        {"protocol": protocol, "seed": seed, "round": number, "passed": accuracy, "pooled": 0.5}
        for number, table in ((21, EARLIER), (30, LATER))
        for protocol, seeds in table.items()
        for seed, accuracy in seeds.items()
    ]
    return pd.DataFrame(rows)


def test_a_row_for_each_round_has_means_and_intervals_of_each_protocol(forgotten: ModuleType) -> None:
    table = forgotten.over_rounds(passed())
    assert table["round"].to_list() == [21, 30]
    assert table["kept, passed, %"][0] == "60.0 +/- 24.8"  # t(0.975, 2) = 4.3027, s = 10
    assert table["lost, passed, %"][1] == "48.7 +/- 22.4"  # s = 9.0185
    assert set(table["lost, pooled, %"]) == {"50.0 +/- 0.0"}


def test_what_one_has_gained_more_than_another_is_paired_by_seed(forgotten: ModuleType) -> None:
    table = forgotten.changes(passed(), [("kept", "lost"), ("lost", "kept")])
    rows = table.set_index(["on", "claim"])
    found = rows.loc[("passed", "kept > lost")]
    # 5 + 10, 6 + 12 and 5 + 12 points: their s is 1.5275
    assert found.to_list() == [30, 3, "+5.3 +/- 1.4", "-11.3 +/- 2.9", "+16.7", "3.8", "confirmed"]
    assert rows.loc[("passed", "lost > kept"), ["difference, points", "verdict"]].to_list() == ["-16.7", "contradicted"]
    assert set(rows.loc["pooled", "verdict"]) == {"undecided"}


def test_gains_beyond_pooled_tests_are_those_on_the_batches_less_those_on_pooled_tests(forgotten: ModuleType) -> None:
    rising = passed()
    rising.loc[rising["round"] == 30, "pooled"] = 0.62
    rows = forgotten.changes(rising, [("kept", "lost")]).set_index("on")
    assert rows["first"].to_dict() == {
        "passed": "+5.3 +/- 1.4",
        "pooled": "+12.0 +/- 0.0",
        "beyond pooled": "-6.7 +/- 1.4",
    }
    assert rows.loc["beyond pooled", "difference, points"] == "+16.7"


def test_who_is_ahead_is_told_on_both_tests_with_a_verdict(forgotten: ModuleType) -> None:
    table = forgotten.ahead(passed(), [21, 30], "kept", "lost")
    assert table["passed, points"].to_list() == ["+0.0 +/- 0.0", "+16.7 +/- 3.8"]
    assert table["passed verdict"].to_list() == ["undecided", "confirmed"]
    assert set(table["pooled verdict"]) == {"undecided"}
