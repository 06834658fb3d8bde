"""FlexiFed's families of models, one device for each version: what each has in common, sends and receives."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedsim.experiment.describe import describe
from fedsim.experiment.run import run
from fedsim.scenario.load import load

SCENARIOS = Path(__file__).parents[2] / "scenarios/paper"
LAYERS = {"vgg": [1, 6, 7, 7], "charcnn": [2, 3, 4, 4], "vdcnn": [4, 6, 12, 12]}
"""That each version has in common with another one."""
DATA = pytest.mark.data


@pytest.mark.long
@pytest.mark.parametrize("family", ["vgg", pytest.param("charcnn", marks=DATA), pytest.param("vdcnn", marks=DATA)])
def test_a_round_of_four_versions(family: str, tmp_path: Path) -> None:
    scenario = load(SCENARIOS / f"flexifed_{family}_small.yaml", overrides=["stop.rounds=1"])
    facts, materials = describe(scenario)
    told = facts["protocols"][0]["common_layers"]
    assert [of_class["layers"] for of_class in told] == LAYERS[family]
    whole = {name: table.bytes() for name, table in zip(materials.device_classes, materials.client_tables, strict=True)}
    results = run(scenario, out=tmp_path, workers=1)
    rows = results.device_classes.set_index(["protocol", "device_class"])
    for of_class in told:
        row = rows.loc[("max", of_class["device_class"])]
        assert row["uplink_bytes"] == whole[of_class["device_class"]] == of_class["of_bytes"]
        assert row["downlink_bytes"] == of_class["bytes"] > 0
        assert 0 <= row["accuracy"] <= 1
    basic = rows.loc["basic"]
    assert (basic["uplink_bytes"] == min(of_class["bytes"] for of_class in told)).all(), "what all have in common"
    assert (basic["downlink_bytes"] == basic["uplink_bytes"]).all()
