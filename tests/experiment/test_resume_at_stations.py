"""Killed at any moment, a run with base stations goes on byte for byte, with what their codecs remember."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digit_runs
import pandas as pd
import pytest
from killed_runs import killed_again_and_again
from run_server import RunServer
from tiers import FULL, mostly_long

from fedsim.experiment.run import run
from fedsim.scenario.schema import Scenario

SPARSE = {"path": f"{Path(__file__).parents[1] / 'outside' / 'sparse.py'}:Sparse", "threshold": 0.02}
STEPS: dict[str, Any] = {"name": "fedgs", "iterations": 3, "devices": 2, "presampled": 1}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "fused": {**STEPS, "server": {"name": "adam"}, "codec": SPARSE},
    "device by device": {**STEPS, "fused": False, "inner_codec": SPARSE},
    "a part of the model": {**STEPS, "fused": False, "exchange": {"name": "lasp"}, "inner_codec": SPARSE},
    "edge rounds": {"name": "hierarchical", "clients": 7, "edge_rounds": 2, "codec": SPARSE, "move_share": 0.2},
}


def scenario(label: str) -> dict[str, Any]:
    return digit_runs.data(
        {
            "topology": {"name": "factory_park", "factories": 3, "devices_per_factory": 4},
            "protocols": [{**PROTOCOLS[label], "label": label}],
            "stop.rounds": 4,
        }
    )


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "executor"),
    mostly_long(
        [(label, executor) for label in PROTOCOLS for executor in ("serial", "batched")],
        now=[],
    ),
)
def test_a_killed_run_at_stations_goes_on_byte_for_byte(
    server: RunServer, tmp_path: Path, label: str, executor: str
) -> None:
    kills = 2 if FULL else 1
    killed_again_and_again(server, scenario(label), tmp_path, kills=kills, executor=executor, workers=1)


def test_what_a_station_reports_has_the_size_that_its_codec_measures(tmp_path: Path) -> None:
    """8 bytes for each number that is sent, less than the whole model has, and others in each round."""
    content = scenario("fused") | {"name": "measured"}
    results = run(Scenario.model_validate(content), out=tmp_path, executor="serial")
    transfers: pd.DataFrame = results.transfers
    model = results.manifest["model"]["bytes"]
    up = transfers[(transfers["client_index"] == -1) & (transfers["direction"] == "uplink") & ~transfers["access"]]
    first_hops = up.groupby("transfer")["bytes"].first()
    assert len(first_hops) == 3 * 4
    assert (first_hops % 8 == 0).all() and first_hops.max() < 2 * model and first_hops.nunique() > 6
    down = transfers[(transfers["client_index"] == -1) & (transfers["direction"] == "downlink")]
    assert set(down["bytes"]) == {model}
