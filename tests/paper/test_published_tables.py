"""Published numbers stand beside ours, in the unit they were printed in."""

from __future__ import annotations

import math
from math import nan
from pathlib import Path

import pandas as pd
import pytest
from tiny_results import rounds_of, summary_of, write_results

from fedsim import registry
from fedsim.experiment.results import Results
from fedsim.metrics.cost_models.fedgsp import FedGSPCost
from fedsim.metrics.cost_models.hfedms import HFedMSCost
from fedsim.metrics.cost_models.settings import CostModelSettings, RunFacts
from fedsim.metrics.summary import formula_row
from fedsim.paper.published import COLUMNS, published

TIB_BYTES = 1024**4
KAPPA_K = 0.3 * 368
LOGARITHMIC = tuple(10 * math.floor(2 * math.log(number) + 1) for number in range(1, 35))
TABLES: list[tuple[str, CostModelSettings, dict[str, RunFacts]]] = [
    (
        "hfedms_table4",
        HFedMSCost(),
        {
            "fedavg": RunFacts(368, KAPPA_K, (368,) * 490, 4 * 6.68e6),
            "hfedms_s": RunFacts(368, KAPPA_K, (10,) * 32, 4 * 6.68e6),
            **{
                f"hfedms_d_t{interval}": RunFacts(368, KAPPA_K, (10,) * rounds, 4 * 6.68e6, interval, 4 * 6.3e3)
                for interval, rounds in ((3, 36), (5, 34), (7, 67), (9, 81))
            },
        },
    ),
    (
        "fedgsp_cost",
        FedGSPCost(),
        {
            "fedavg": RunFacts(368, KAPPA_K, (368,) * 470, 25.2e6),
            "fedgsp": RunFacts(368, KAPPA_K, LOGARITHMIC, 25.2e6),
        },
    ),
]
each_table = pytest.mark.parametrize(("name", "cost_model", "systems"), TABLES, ids=[name for name, *_ in TABLES])


def run_of(folder: Path, *rows: dict[str, object]) -> Results:
    return write_results(folder, [rounds_of("fedavg", 1, [nan])], summary=rows)


def row(**changed: object) -> dict[str, object]:
    return summary_of(rounds_of("fedavg", 1, [nan]), **changed)


def of_quantity(table: pd.DataFrame, quantity: str) -> dict[str, object]:
    (found,) = table[table["quantity"] == quantity].to_dict("records")
    return {str(key): value for key, value in found.items()}


def decimals(printed: float) -> int:
    return len(f"{printed}".removesuffix(".0").partition(".")[2])


@each_table
def test_the_formula_gives_every_printed_digit(
    tmp_path: Path, name: str, cost_model: CostModelSettings, systems: dict[str, RunFacts]
) -> None:
    formulas = [
        formula_row(row(protocol=system, rounds=facts.rounds), cost_model.cost(facts))
        for system, facts in systems.items()
    ]
    table = registry.load("paper_tables", name)(run_of(tmp_path / "run", row(), *formulas))
    reference = "worked out" if name == "fedgsp_cost" else "published"
    assert list(table) == [reference if column == "published" else column for column in COLUMNS]
    assert len(table) == len(published(name)) >= 3 * len(systems)
    for line in table.to_dict("records"):
        assert round(line["formula"], decimals(line[reference])) == line[reference], line


def test_events_are_told_in_the_units_that_were_printed(tmp_path: Path) -> None:
    event = row(rounds=490, transfer_bytes=2.5 * TIB_BYTES, sim_time_s=1000 * 3600.0)
    table = registry.load("paper_tables", "hfedms_table4")(run_of(tmp_path / "run", event))
    assert of_quantity(table, "traffic")["event"] == 2.5
    assert of_quantity(table, "traffic")["unit"] == "TiB"
    assert of_quantity(table, "time")["event"] == 1000
    assert math.isnan(float(str(of_quantity(table, "time")["formula"])))  # there was no formula's row


@pytest.mark.parametrize(
    ("name", "protocol", "accuracy"), [("hfedms_table3", "hfedms_d", 84.2), ("fedgsp_table1", "hfedms_s", 85.4)]
)
def test_accuracies_are_told_in_per_cent(tmp_path: Path, name: str, protocol: str, accuracy: float) -> None:
    event = row(protocol=protocol, rounds=100, final_accuracy=0.75, loss=0.9)
    table = registry.load("paper_tables", name)(run_of(tmp_path / "run", event))
    told = {key: of_quantity(table, "accuracy")[key] for key in ("published", "unit", "event")}
    assert told == {"published": accuracy, "unit": "%", "event": 75.0}
    assert (of_quantity(table, "loss")["event"], of_quantity(table, "rounds")["event"]) == (0.9, 100)


def test_rounds_to_82_per_cent_are_counted_in_the_rounds(tmp_path: Path) -> None:
    rounds = [rounds_of("fedgs", seed, [0.5] * late + [0.83] * 5) for seed, late in ((1, 2), (2, 6))]
    rounds.append(rounds_of("ida_intrac", 1, [0.5] * 9))
    table = registry.load("paper_tables", "fedgs_table2")(write_results(tmp_path / "run", rounds))
    told = table.set_index(["system", "quantity"])
    assert told.loc[("FedGS", "rounds to 82 %"), ["published", "event"]].to_list() == [147, (3 + 7) / 2]
    assert told.loc[("FedGS", "accuracy"), ["published", "event"]].to_list() == [86.0, 83.0]
    assert ("IDA+INTRAC", "rounds to 82 %") not in told.index, "it does not reach them"
    assert set(table["system"]) == {"FedGS", "IDA+INTRAC"}


def test_a_figures_points_are_found_by_their_labels(tmp_path: Path) -> None:
    rows = [row(protocol=label, final_accuracy=0.75) for label in ("T=50 n=32", "T = 30, n = 8", "L=5")]
    run = run_of(tmp_path / "run", *rows)
    for name, expected in {
        "fedgs_fig5": {"T=50 n=32": 86.0, "T=30 n=8": 85.2, "L=5": 86.1},
        "fedgs_fig5_5_factories": {"T=50 n=32": 86.1, "L=5": 86.0},
        "fedgs_fig5_20_factories": {"T=50 n=32": 86.4, "L=5": 86.2},
    }.items():
        table = registry.load("paper_tables", name)(run)
        assert dict(zip(table["system"], table["published"], strict=True)) == expected
        assert set(table["event"]) == {75.0}


def test_several_seeds_count_by_their_mean(tmp_path: Path) -> None:
    rows = [row(seed=seed, sim_time_s=hours * 3600.0) for seed, hours in ((1, 10.0), (2, 30.0))]
    table = registry.load("paper_tables", "hfedms_table4")(run_of(tmp_path / "run", *rows))
    assert of_quantity(table, "time")["event"] == 20


def test_a_simulated_run_tells_no_communication_apart(tmp_path: Path) -> None:
    table = registry.load("paper_tables", "fedgsp_cost")(run_of(tmp_path / "run", row()))
    assert math.isnan(float(str(of_quantity(table, "communication")["event"])))


def test_only_systems_of_the_run_are_listed_whatever_their_spelling(tmp_path: Path) -> None:
    rows = [row(protocol=protocol) for protocol in ("hfedms_d_t5", "FedAvg", "fedprox")]
    table = registry.load("paper_tables", "hfedms_table4")(run_of(tmp_path / "run", *rows))
    assert set(table["system"]) == {"FedAvg", "HFedMS-D T=5"}


def test_a_run_with_none_of_the_systems_gives_an_empty_table(tmp_path: Path) -> None:
    table = registry.load("paper_tables", "hfedms_table4")(run_of(tmp_path / "run", row(protocol="fedprox")))
    assert list(table) == COLUMNS
    assert table.empty


@pytest.mark.parametrize("name", registry.names("paper_tables"))
def test_no_number_stands_twice(name: str) -> None:
    numbers = published(name)
    assert len(numbers) > 0
    assert not numbers.duplicated(["system", "metric"]).any()
