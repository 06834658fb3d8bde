"""Who was in which group, and what clients kept on their devices, in a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from small_worlds import scenario

from fedsim.errors import UserError
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.grouping.icg import ICG
from fedsim.protocols.fedgsp import NaiveGSPWithICG
from fedsim.scenario.load import load

HFEDMS = {
    "name": "hfedms_d",
    "interval": 2,
    "sampling_rate": 0.5,
    "growth": {"name": "linear", "alpha": 1.0, "beta": 2},
}


WHOLE = {**HFEDMS, "sampling_rate": 1.0}
YARDSTICK = {"name": "naive_gsp_icg", "groups": 2, "grouping": {"name": "icg", "cost": "l2"}}
PROTOCOLS: list[dict[str, Any]] = [
    YARDSTICK,
    HFEDMS,
    {"name": "fedavg", "fraction": 1.0},
    {**WHOLE, "label": "semantics", "scc": {"capacity": 30}},
    {**WHOLE, "label": "samples", "scc": {"keep": "samples", "capacity": 30}},
    {**WHOLE, "label": "own extractor", "scc": {"first_extractor": "local"}},
]


def results(folder: Path, *protocols: dict[str, Any], **changes: Any) -> Results:
    """Four rounds of eight sensors with 20 fresh digits each."""
    base = {
        "stop.rounds": 4,
        "topology.devices": 8,
        "data": {"name": "digits", "partition": {"name": "iid"}, "stream": {"samples": 20}},
        "model": {"name": "mlp", "hidden": [16]},
        "protocols": list(protocols),
    }
    return run(scenario(base | changes), out=folder)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All of these in one run."""
    return results(tmp_path_factory.mktemp("groups") / "run", *PROTOCOLS)


def test_every_member_of_every_group_has_a_row_each_time_that_groups_are_formed(found: Results) -> None:
    groups = found.groups
    groups = groups[groups["protocol"] == "hfedms_d"]
    assert groups["round"].unique().tolist() == [1, 3]
    for round_number, number, members in ((1, 2, 4), (3, 4, 2)):
        formed = groups[groups["round"] == round_number]
        assert formed.groupby("group").size().tolist() == [members] * number
        assert sorted(formed["client_index"]) == list(range(8))
        assert formed.groupby("group")["position"].apply(sorted).tolist() == [list(range(members))] * number
        assert formed.groupby("group")["selected"].agg(["min", "max"]).sum().tolist() == [number // 2] * 2
    assert groups["client"].iloc[0] == f"sensor-{groups['client_index'].iloc[0] + 1}"


def test_a_run_without_groups_says_so(tmp_path: Path) -> None:
    found = results(tmp_path / "run", {"name": "fedavg", "fraction": 1.0})
    assert not (found.folder / "groups.parquet").exists()
    with pytest.raises(UserError, match=r"groups\.parquet was not written: no protocol of this run forms groups"):
        _ = found.groups


def test_what_clients_keep_is_in_the_summary(found: Results) -> None:
    """Two extractors of 64 x 16 weights and 16 biases; at most two batches and a database of 30, of 16 numbers each."""
    summary = found.summary.set_index("protocol")
    assert summary.loc["semantics", "extractor_bytes"] == 2 * 4 * (64 * 16 + 16)
    assert summary.loc["semantics", "semantics_bytes"] == (30 + 2 * 20) * 4 * (16 + 1)
    assert np.isnan(summary.loc["fedavg", ["extractor_bytes", "semantics_bytes"]].astype(float)).all()


def test_raw_samples_that_are_kept_have_their_own_size(found: Results) -> None:
    row = found.summary.set_index("protocol").loc["samples"]
    assert row["extractor_bytes"] == 4 * (64 * 16 + 16)
    assert row["semantics_bytes"] == (30 + 2 * 20) * (4 * (16 + 1) + 64 + 1)


def test_an_extractor_of_its_own_is_one_more(found: Results) -> None:
    """Its own, the scattered one, and the one that the database was made with."""
    assert found.summary.set_index("protocol").loc["own extractor", "extractor_bytes"] == 3 * 4 * (64 * 16 + 16)


def test_groups_of_a_yardstick_are_formed_once_and_so_it_is_written_out(found: Results) -> None:
    groups = found.groups
    formed = (
        groups[groups["protocol"] == "naive_gsp_icg"]
        .groupby("round")
        .apply(lambda rows: rows[["group", "position", "client_index"]].to_numpy().tolist())
    )
    assert formed.tolist() == [formed[1]] * 4
    again = load(found.folder / "scenario.yaml").protocols[0]
    assert isinstance(again, NaiveGSPWithICG)
    assert (again.grouping.once, again.grouping.cost) == (True, "l2")
    with pytest.raises(ValidationError, match="once=false is another protocol"):
        NaiveGSPWithICG(grouping=ICG(once=False))


def test_a_size_that_is_not_known_is_empty_and_not_zero(tmp_path: Path) -> None:
    declared = {"name": "declared", "parameters": 250, "classifier_parameters": 50}
    free = {"name": "per_sample", "seconds_per_sample": 0.0}
    found = results(tmp_path / "run", HFEDMS, model=declared, **{"devices.classes.sensor.compute": free})
    assert found.summary["semantics_bytes"].isna().all()
    assert found.summary["extractor_bytes"].tolist() == [2 * 4 * 200]
