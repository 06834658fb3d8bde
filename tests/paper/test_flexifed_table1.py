"""FlexiFed's Table 1: what is printed, what it says, and a run's device classes beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import pandas as pd
import pytest
from tiny_results import rounds_of, write_results

from fedsim import registry
from fedsim.paper.flexifed import STRATEGIES, flexifed_gains
from fedsim.paper.published import COLUMNS, published
from fedsim.scenario.load import written_out

FAMILIES = ["AG NEWS CharCNN", "AG NEWS VDCNN"]
FAMILIES += [f"{data} {family}" for data in ("CIFAR-10", "CINIC-10", "Speech Commands") for family in ("VGG", "ResNet")]


def printed() -> pd.DataFrame:
    """A row for each model, a column for each strategy."""
    table = published("flexifed_table1")
    names = table["system"].str.partition(", ")
    cells = table.assign(strategy=names[0], model=names[2], value=table["value"].astype(float))
    return cells.pivot(index="model", columns="strategy", values="value")


def test_it_has_four_versions_of_eight_families_by_five_strategies() -> None:
    table = printed()
    assert table.shape == (32, 5)
    assert set(table) == set(STRATEGIES.values())
    assert table.notna().all(axis=None)
    families = table.index.str.rpartition("-").get_level_values(0).value_counts()
    assert families.to_dict() == dict.fromkeys(FAMILIES, 4)


def test_its_orderings_hold_in_every_cell() -> None:
    table = printed()
    assert (table["Standalone"] < table["Basic-Common"]).all()
    assert (table["Clustered-FL"] < table["Clustered-Common"]).all()
    assert (table["Clustered-Common"] <= table["Max-Common"]).all()


def test_the_gains_are_2_4_to_9_7_points_and_not_from_2_6() -> None:
    gains = flexifed_gains()
    assert len(gains) == 32
    assert (gains.min(), gains.max()) == (2.4, 9.7)
    assert gains.idxmax() == "AG NEWS CharCNN-3"
    assert set(gains.index[gains == 2.4]) == {"CIFAR-10 VGG-11", "Speech Commands VGG-11"}


def resnets(**changes: Any) -> Any:
    """A scenario with two device classes; its data are nowhere, and never read."""
    models = {"small": None, "deep": {"name": "resnet", "depth": 56}}
    return digit_runs.scenario(
        {
            "devices.default": "small",
            "devices.classes": {
                name: digit_runs.INSTANT | ({"model": model} if model else {}) for name, model in models.items()
            },
            "model": {"name": "resnet", "depth": 20},
            "data": {"name": "cifar10", "path": "nowhere"},
            "evaluate": {"on": ["own"]},
            "protocols": [
                {"name": "clustered_fl", "fraction": 1.0},
                {"name": "flexifed", "label": "ours", "fraction": 1.0},
                {"name": "fedavg", "clients": 3},
            ],
            **changes,
        }
    )


def run_of(folder: Path, scenario: Any) -> Any:
    rounds = [rounds_of(title, seed, [0.4, 0.5]) for title in ("clustered_fl", "ours", "fedavg") for seed in (1, 2)]
    results = write_results(folder, rounds)
    accuracies = {"small": 0.71, "deep": 0.8}
    table = pd.concat(
        rounds_of(title, seed, [0.1, accuracy + 0.02 * seed]).assign(device_class=name, clients=2, compute_s=1.0)
        for title in ("clustered_fl", "ours", "fedavg")
        for seed in (1, 2)
        for name, accuracy in accuracies.items()
    )
    table.to_csv(folder / "device_classes.csv", index=False)
    (folder / "scenario.yaml").write_text(written_out(scenario))
    return results


def test_a_runs_device_classes_stand_beside_their_models(tmp_path: Path) -> None:
    table = registry.load("paper_tables", "flexifed_table1")(run_of(tmp_path / "run", resnets()))
    assert [*table] == COLUMNS
    rows = table.set_index("system")[["published", "event"]]
    assert rows["published"].to_dict() == {
        "Clustered-FL, CIFAR-10 ResNet-20": 73.6,
        "Clustered-FL, CIFAR-10 ResNet-56": 75.8,
        "Max-Common, CIFAR-10 ResNet-20": 78.8,
        "Max-Common, CIFAR-10 ResNet-56": 84.2,
    }
    assert rows["event"].to_list() == pytest.approx([74, 83, 74, 83])


def test_what_is_not_printed_is_left_out(tmp_path: Path) -> None:
    digits = resnets(data={"name": "digits"}, model={"name": "mlp"})
    table = registry.load("paper_tables", "flexifed_table1")(run_of(tmp_path / "run", digits))
    assert [*table] == COLUMNS and table.empty
    unscored = write_results(tmp_path / "unscored", [rounds_of("ours", 1, [0.5])])
    (tmp_path / "unscored/scenario.yaml").write_text(written_out(resnets()))
    assert registry.load("paper_tables", "flexifed_table1")(unscored).empty
