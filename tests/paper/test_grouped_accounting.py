"""HFedMS Table IV and FedGSP's costs, all rows: the scenarios as they are run, by formula and as simulated.

The formulas count kappa K = 110.4 clients in a round. A simulated one has the members of S = floor(kappa M) of M groups
of L = floor(K / M), and all K clients report 62 counts of 4 bytes when groups are formed. Both are worked out here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from fedsim import registry
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.paper.published import published
from fedsim.protocols.run_loop import Stop
from fedsim.scenario.load import load
from fedsim.scenario.schema import Scenario
from fedsim.units import HOUR_S, TIB_BYTES

pytestmark = pytest.mark.slow

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "paper"
REPORT_BYTES = 4 * 62 * 368
MODEL_BYTES, CLASSIFIER_BYTES = 4 * 6.68e6, 4 * 6.3e3

EVENTS = {  # protocol: interval, rounds; TiB of models alone, and with reports; hours, with and without
    "fedavg": (1, 490, "2.6197", "2.6197", "1257.3"),
    "hfedms_s": (1, 32, "0.1655", "0.1655", "79.4"),
    "hfedms_d_t3": (3, 36, "0.0935", "0.0935", "40.8"),
    "hfedms_d_t5": (5, 34, "0.0552", "0.0553", "24.1"),
    "hfedms_d_t7": (7, 67, "0.0784", "0.0784", "34.2"),
    "hfedms_d_t9": (9, 81, "0.0708", "0.0708", "30.9"),
}
GROUPED = [name for name in EVENTS if name != "fedavg"]

Rounds = Callable[[str], Results]


def alone(protocol: str) -> Scenario:
    whole = load(SCENARIOS / "hfedms_table4.yaml")
    return whole.model_copy(update={"protocols": tuple(one for one in whole.protocols if one.title == protocol)})


@pytest.fixture(scope="module")
def hfedms_of(tmp_path_factory: pytest.TempPathFactory) -> Rounds:
    """A run of one protocol of the table, by its name."""

    @cache
    def run_of(protocol: str) -> Results:
        return run(alone(protocol), out=tmp_path_factory.mktemp(protocol) / "run")

    return run_of


@pytest.fixture(scope="module")
def hfedms(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(load(SCENARIOS / "hfedms_table4.yaml"), out=tmp_path_factory.mktemp("hfedms") / "run")


@pytest.fixture(scope="module")
def fedgsp(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(load(SCENARIOS / "fedgsp_cost.yaml"), out=tmp_path_factory.mktemp("fedgsp") / "run")


def event(results: Results, protocol: str) -> pd.Series:
    summary = results.summary
    (row,) = (row for _, row in summary[summary["accounting"] == "event"].iterrows() if row["protocol"] == protocol)
    return row


def participants(rounds: int, interval: int = 1) -> Iterator[int]:
    """S L of each round, with f(B) = 10 floor(2 ln B + 1)."""
    for number in range(rounds):
        groups = 10 * math.floor(2 * math.log(number // interval + 1) + 1)
        yield 3 * groups // 10 * (368 // groups)


@pytest.mark.long
@pytest.mark.parametrize("name", ["hfedms", "fedgsp"])
def test_the_formulas_of_a_run_give_every_printed_digit(name: str, request: pytest.FixtureRequest) -> None:
    results: Results = request.getfixturevalue(name)
    title, reference = {"hfedms": ("hfedms_table4", "published"), "fedgsp": ("fedgsp_cost", "worked out")}[name]
    table = registry.load("paper_tables", title)(results)
    numbers = published(title)
    assert table["system"].to_list() == numbers["system"].to_list()
    for line, printed in zip(table.to_dict("records"), numbers["value"].astype(str), strict=True):
        decimals = len(printed.partition(".")[2].rstrip("0"))
        assert round(line["formula"], decimals) == float(printed) == line[reference], line


@pytest.mark.long
@pytest.mark.parametrize("protocol", EVENTS)
def test_table_iv_as_simulated(hfedms_of: Rounds, protocol: str) -> None:
    row = event(hfedms_of(protocol), protocol)
    interval, rounds, models_tib, tib, hours = EVENTS[protocol]
    reports_bytes = math.ceil(rounds / interval) * REPORT_BYTES if protocol in GROUPED else 0
    reports_s = 8 * reports_bytes / 4e6
    assert row["rounds"] == rounds
    assert f"{row['transfer_bytes'] / TIB_BYTES:.4f}" == tib
    assert f"{(row['transfer_bytes'] - reports_bytes) / TIB_BYTES:.4f}" == models_tib
    assert f"{row['sim_time_s'] / HOUR_S:.1f}" == f"{(row['sim_time_s'] - reports_s) / HOUR_S:.1f}" == hours


@pytest.mark.long
@pytest.mark.parametrize("protocol", GROUPED)
def test_table_iv_is_simulated_to_the_byte(hfedms_of: Rounds, protocol: str) -> None:
    interval, rounds, *_ = EVENTS[protocol]
    up_bytes = down_bytes = 0.0
    for number, clients in enumerate(participants(rounds, interval)):
        full = number % interval == 0
        up_bytes += clients * (MODEL_BYTES if full else CLASSIFIER_BYTES)
        down_bytes += clients * (MODEL_BYTES * (1 if interval == 1 else 2) if full else CLASSIFIER_BYTES)
    up_bytes += math.ceil(rounds / interval) * REPORT_BYTES
    row = event(hfedms_of(protocol), protocol)
    assert (row["uplink_bytes"], row["downlink_bytes"]) == (up_bytes, down_bytes)
    assert row["sim_time_s"] == pytest.approx(8 * (up_bytes / 4e6 + down_bytes / 7e6), rel=1e-12)  # the air never rests


@pytest.mark.long
def test_a_block_is_one_full_round_whose_mean_is_scattered_and_rounds_of_the_classifier(tmp_path: Path) -> None:
    whole = alone("hfedms_d_t5")
    shorter = whole.protocols[0].model_copy(update={"stop": Stop(rounds=7)})
    rounds = run(whole.model_copy(update={"protocols": (shorter,)}), out=tmp_path / "run").rounds
    sent = [(0.0, 0.0), *zip(rounds["uplink_bytes"], rounds["downlink_bytes"], strict=True)]
    each = [(up - up_before, down - down_before) for (up_before, down_before), (up, down) in pairwise(sent)]
    full, part = (108 * MODEL_BYTES + REPORT_BYTES, 2 * 108 * MODEL_BYTES), (108 * CLASSIFIER_BYTES,) * 2
    assert each == [full, *[part] * 4, full, part]
    assert set(rounds["participants"]) == {108}


@pytest.mark.long
def test_fedgsp_as_simulated(fedgsp: Results) -> None:
    one_way_bytes = sum(participants(34)) * 25.2e6
    row = event(fedgsp, "fedgsp")
    assert row["downlink_bytes"] == one_way_bytes
    assert row["uplink_bytes"] == one_way_bytes + 34 * REPORT_BYTES
    on_the_air_s, aggregation_s = 8 * row["transfer_bytes"] / 567e6, 34 * 1.2111e-3
    assert row["sim_time_s"] == pytest.approx(on_the_air_s + aggregation_s, rel=1e-12)  # computing is in its shadow
    assert f"{row['sim_time_s']:,.1f}, {row['transfer_bytes'] / TIB_BYTES:.4f}" == "2,564.4, 0.1653"


@pytest.mark.long
def test_fedavg_beside_fedgsp_as_simulated(fedgsp: Results) -> None:
    row = event(fedgsp, "fedavg")
    assert row["uplink_bytes"] == row["downlink_bytes"] == 470 * 110 * 25.2e6
    assert f"{row['sim_time_s']:,.1f}, {row['transfer_bytes'] / TIB_BYTES:.4f}" == "36,765.0, 2.3699"
    saved = [1 - event(fedgsp, "fedgsp")[name] / row[name] for name in ("sim_time_s", "transfer_bytes")]
    assert [f"{100 * share:.2f}" for share in saved] == ["93.03", "93.03"]
