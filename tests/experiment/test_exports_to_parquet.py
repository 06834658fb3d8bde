"""What Parquet files of an export hold is what the run folders have: rows, columns, whose they are, provenance."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from exported import HOSTILE, all_files, finished_run
from small_worlds import scenario
from tiny_results import counted

from fedsim.errors import UserError
from fedsim.experiment.exports.export import export
from fedsim.experiment.results import Results
from fedsim.experiment.run import run


def read(place: object, name: str) -> pd.DataFrame:
    return pd.read_parquet(Path(str(place)) / f"{name}.parquet")


def with_links(folder: Path, *protocols: str, name: str) -> Results:
    results = finished_run(folder, protocols, name=name)
    rows = [
        (protocol, seed, "hall <1>", way, 7, 0.5, nan)
        for protocol in protocols
        for seed in (1, 2)
        for way in ("uplink", "downlink")
    ]
    columns = ["protocol", "seed", "link", "direction", "bytes", "utilisation", "mean_queue"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "links.csv", index=False)
    return results


def test_tables_read_back_are_those_of_the_run(tmp_path: Path) -> None:
    results = with_links(tmp_path / "run", *HOSTILE, name="tiny")
    place = export([results], "parquet")
    assert place == tmp_path / "run/exports/parquet"
    for name in ("rounds", "summary", "links"):
        table = read(place, name)
        assert list(table.pop("run").unique()) == ["tiny"]
        pd.testing.assert_frame_equal(table, getattr(results, name))
    assert sorted(all_files(tmp_path / "run/exports/parquet")) == [
        "fedsim_export.json", "links.parquet", "rounds.parquet", "summary.parquet",
    ]  # fmt: skip


def test_runs_with_other_columns_and_tables_share_files_and_what_one_has_not_is_null(tmp_path: Path) -> None:
    one, other = (
        with_links(tmp_path / "one", "fedavg", name="one"),
        finished_run(tmp_path / "other", ["x"], name="other"),
    )
    rounds = other.rounds.assign(participants=4, recall_crack=[0.5, nan, 0.25] * 2).drop(columns="backbone_bytes")
    rounds.to_parquet(other.folder / "rounds.parquet", index=False)
    counted("x", 1, [[3, 1], [0, 2]]).to_csv(other.folder / "confusion.csv", index=False)
    place = export([one, other.folder], "parquet", out=tmp_path / "out")
    table = read(place, "rounds")
    assert list(table["run"]) == ["one"] * 6 + ["other"] * 6
    assert table["participants"].isna().tolist() == [True] * 6 + [False] * 6
    assert table["backbone_bytes"].isna().tolist() == [False] * 6 + [True] * 6
    file = pq.ParquetFile(tmp_path / "out/rounds.parquet")
    assert str(file.schema_arrow.field("participants").type) == "int64"  # null, and still a whole number
    assert file.read()["recall_crack"].null_count == 6 + 2
    assert set(read(place, "links")["run"]) == {"one"} and set(read(place, "confusion")["run"]) == {"other"}


def test_transfers_go_along_where_the_run_saved_them(tmp_path: Path) -> None:
    results = finished_run(tmp_path / "run")
    transfers = pd.DataFrame({"protocol": ["fedavg"] * 3, "seed": 1, "bytes": [1.5, 2.5, nan], "outcome": "arrived"})
    transfers.to_parquet(results.folder / "transfers.parquet", index=False)
    pd.testing.assert_frame_equal(
        read(export([results], "parquet"), "transfers").drop(columns="run"), results.transfers
    )


def test_where_the_time_went_goes_along_where_the_run_knows_it(tmp_path: Path) -> None:
    known = run(scenario({"name": "known", "stop": {"rounds": 2}}), out=tmp_path / "known")
    older = finished_run(tmp_path / "older", name="older")
    place = export([known, older], "parquet", out=tmp_path / "out")
    for name in ("critical_path", "critical_pieces", "stragglers", "link_loads"):
        table = read(place, name)
        assert list(table.pop("run").unique()) == ["known"]
        pd.testing.assert_frame_equal(table, getattr(known, name))


def test_each_file_knows_where_its_numbers_come_from(tmp_path: Path) -> None:
    results = finished_run(tmp_path / "run")
    place = Path(export([results], "parquet"))
    for path in place.glob("*.parquet"):
        told = json.loads(pq.read_schema(path).metadata[b"fedsim"])
        assert told == {
            "tiny": {"scenario": (tmp_path / "run/scenario.yaml").read_text("utf-8"), "manifest": results.manifest}
        }
    mark = json.loads((place / "fedsim_export.json").read_text("utf-8"))
    assert (mark["to"], mark["runs"]) == ("parquet", {"tiny": results.manifest})


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    results = finished_run(tmp_path / "run")
    first = all_files(Path(export([results], "parquet")))
    assert all_files(Path(export([results], "parquet"))) == first


def test_columns_that_cannot_be_joined_are_said(tmp_path: Path) -> None:
    one, other = (finished_run(tmp_path / name, ["x"], name=name) for name in ("one", "other"))
    other.rounds.assign(selected="many").to_parquet(other.folder / "rounds.parquet", index=False)
    one.rounds.assign(selected=4).to_parquet(one.folder / "rounds.parquet", index=False)
    with pytest.raises(UserError, match="the runs cannot share a table of rounds: .*; export them apart"):
        export([one.folder, other.folder], "parquet", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_without_its_scenario_is_said(tmp_path: Path) -> None:
    results = finished_run(tmp_path / "run")
    (results.folder / "scenario.yaml").unlink()
    with pytest.raises(UserError, match="has lost its scenario.yaml; run the scenario again"):
        export([results], "parquet")
