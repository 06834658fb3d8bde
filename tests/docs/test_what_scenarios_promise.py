"""What the shipped scenarios say of themselves is so: in their headers, in measured.csv, in a run on seed 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scenario_table
from writers import scenarios
from writers.expected import SEEDS, Row, column, expected, misses

import fedsim
from fedsim.cli import main
from fedsim.scenario.build import gather_materials
from fedsim.scenario.schema import Scenario

NAMES = scenarios.names()
TEXTS = {name: scenarios.path_of(name).read_text("utf-8") for name in NAMES}
ON_FILES = {name for name in NAMES if "FEDSIM_DATA" in TEXTS[name]}
READ_IN = dict.fromkeys(ON_FILES, pytest.mark.slow) | {"cifar10": pytest.mark.long}
"""How long it takes to read their files: cifar10 has 60,000 photographs to decode."""
FAR = 0.25
"""By so much an accuracy is above chance at least, and an error is a part smaller than that of the best constant."""
LONGEST_MIN = 5.0
LONGEST_OF_ALL_MIN = 45.0
TEST_SETS = ("global", "clients", "unseen", "own")


def said(name: str) -> dict[str, Row]:
    return expected(scenarios.path_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_header_says_that_files_are_needed_where_they_are(name: str) -> None:
    assert ("FEDSIM_DATA" in TEXTS[name]) == scenarios.needs_files(scenarios.scenario_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_says_what_each_of_its_protocols_ends_with(name: str) -> None:
    rows, scenario = said(name), scenarios.scenario_of(name)
    assert list(rows) == [protocol.title for protocol in scenario.protocols]
    assert any(row.by_hand for row in rows.values()), "neither time nor traffic was worked out for any protocol"
    for protocol, row in rows.items():
        assert bool(row.ranges) == scenario.learn
        assert not scenario.learn or any(
            metric.startswith(("accuracy", "macro_f1", "rmse")) for metric in row.ranges
        ), f"{protocol} has no metric that can be far above chance"


def set_of(metric: str, scenario: Scenario) -> str:
    """The test set that a metric is of: the first one, where its name does not end in one."""
    return next((one for one in TEST_SETS if metric.endswith(f"_{one}")), scenario.evaluate.on[0])


def labels(test_set: str, scenario: Scenario) -> np.ndarray:
    """What the samples of a test set are, on seed 1."""
    data = gather_materials(scenario, SEEDS[0]).dataset
    assert data.y is not None
    ids = {"global": [data.test_ids], "unseen": data.unseen_test_ids}.get(test_set, data.client_test_ids)
    return data.y[np.concatenate(ids)]


def far_from_chance(metric: str, bounds: tuple[float, float], targets: np.ndarray, cap: float) -> bool:
    """Whether all of a range is: above the share of the largest class, or below the deviation from the mean."""
    if metric.startswith(("accuracy", "macro_f1")):
        return bounds[0] >= np.unique(targets, return_counts=True)[1].max() / len(targets) + FAR
    unit = cap if metric.startswith("rmse_cycles") else 1.0
    return not metric.startswith("rmse") or bounds[1] <= (1 - FAR) * unit * float(targets.std())


@pytest.mark.parametrize(
    ("metric", "bounds", "far"),
    [
        ("accuracy", (0.76, 0.9), True),
        ("accuracy_own", (0.74, 1.0), False),
        ("macro_f1", (0.74, 1.0), False),
        ("rmse", (0.1, 0.37), True),  # the labels' deviation is 0.5
        ("rmse", (0.1, 0.38), False),
        ("rmse_cycles", (1.0, 37.0), True),
        ("rmse_cycles", (1.0, 38.0), False),
        ("rounds", (0.0, 1.0), True),
    ],
)
def test_chance_is_the_largest_class_or_the_mean(metric: str, bounds: tuple[float, float], far: bool) -> None:
    assert far_from_chance(metric, bounds, np.array([0, 1, 1, 0]), cap=100.0) == far
    assert not far_from_chance("accuracy", (0.99, 1.0), np.array([0, 1, 1, 1]), cap=1.0)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=(pytest.mark.data, READ_IN[name]) if name in ON_FILES else ())
        for name in NAMES
        if scenarios.scenario_of(name).learn
    ],
)
def test_what_a_scenario_ends_with_is_far_from_chance(name: str) -> None:
    scenario = scenarios.scenario_of(name)
    known: dict[str, np.ndarray] = {}
    for row in said(name).values():
        for metric, bounds in row.ranges.items():
            test_set = set_of(metric, scenario)
            targets = known.setdefault(test_set, labels(test_set, scenario))
            assert far_from_chance(metric, bounds, targets, getattr(scenario.data, "cap", 1.0)), (metric, bounds)


# -- measured.csv -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    return scenarios.measured()


def test_what_was_measured_is_of_these_scenarios(measured: pd.DataFrame) -> None:
    assert set(measured["scenario"]) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_protocol_was_measured_on_each_seed_as_the_scenario_is_now(name: str, measured: pd.DataFrame) -> None:
    rows, scenario = measured[measured["scenario"] == name], scenarios.scenario_of(name)
    seeds = SEEDS if scenario.learn else SEEDS[:1]
    assert [(row.seed, row.protocol, row.metric) for row in rows.itertuples()] == [
        (seed, protocol, metric)
        for seed in seeds
        for protocol, said_of in said(name).items()
        for metric in said_of.ranges or [""]
    ]
    assert set(rows["settings"]) == {scenarios.settings_of(scenario)}, f"run `make scenarios NAMES={name}`"


@pytest.mark.parametrize("name", NAMES)
def test_what_was_measured_is_as_the_header_says(name: str, measured: pd.DataFrame) -> None:
    assert scenario_table.outside(measured, name, said(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_takes_five_minutes_at_most(name: str, measured: pd.DataFrame) -> None:
    rows = measured[measured["scenario"] == name]
    assert scenarios.minutes(rows, scenarios.scenario_of(name)) <= LONGEST_MIN


def test_all_scenarios_can_be_run_on_one_seed_by_each_long_test(measured: pd.DataFrame) -> None:
    first = measured[measured["seed"] == SEEDS[0]].groupby("scenario")["host_s"].first()
    assert first.sum() / 60 <= LONGEST_OF_ALL_MIN


# -- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.data] * (name in ON_FILES)) for name in NAMES])
def test_a_run_on_seed_1_ends_as_the_header_says(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With one process that trains: two tests run at the same time, and results do not depend on it."""
    words = ["run", str(scenarios.path_of(name)), "--set", f"seeds=[{SEEDS[0]}]", "--workers", "1"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    summary = fedsim.load_results(tmp_path / "run").summary
    problems = []
    for run in summary[summary["accounting"] == "event"].to_dict("records"):
        row = said(name)[run["protocol"]]
        metrics = {metric: run[column(metric, run)] for metric in row.ranges}
        spent = {"sim_time_s": run["sim_time_s"], "transfer_bytes": run["transfer_bytes"]}
        problems += [f"{run['protocol']}: {problem}" for problem in misses(row, metrics, **spent)]
    assert problems == []
    assert set(summary["protocol"]) == set(said(name))
