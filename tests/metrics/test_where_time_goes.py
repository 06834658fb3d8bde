"""Tables of where the time went: hand-made traces and what must come of them; loads over time add up to the totals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_worlds import EVERYTHING_HAPPENS, NO_CONTENTION, NO_TIME, hall, scenario, simulated

from fedsim.cli import main
from fedsim.experiment.explain import parts_of_rounds
from fedsim.experiment.results import Results, load_results
from fedsim.experiment.run import run
from fedsim.kernel.trace import Trace
from fedsim.metrics.critical_path import critical_paths
from fedsim.metrics.link_loads import BINS, MOST_WAYS, link_loads_table
from fedsim.metrics.tables import links_table
from fedsim.metrics.where_time_goes import MOST_STRAGGLERS, critical_path_table, pieces_table, stragglers_table
from fedsim.network.hop import Link, Medium
from fedsim.protocols.world import World

SERIAL = {"stop.rounds": 3}


def loads(world: World) -> pd.DataFrame:
    return link_loads_table(world.trace, world.network.in_flight, world.network.links, duration_s=float(world.env.now))


@pytest.mark.parametrize("changes", [SERIAL, EVERYTHING_HAPPENS, {"stop": {"sim_time_s": 30.0}}])
def test_loads_over_time_have_the_totals_of_the_table_of_links(changes: dict[str, Any]) -> None:
    world = simulated(changes)
    totals = links_table(
        world.trace, world.network.in_flight, world.network.links, duration_s=float(world.env.now)
    ).set_index(["link", "direction"])
    means = loads(world).groupby(["link", "direction"])[["utilisation", "mean_queue"]].mean()
    used = totals[(totals["utilisation"] > 0) | (totals["mean_queue"] > 0)]
    assert len(means) == min(len(used), MOST_WAYS) > 0
    expected = totals.loc[means.index, ["utilisation", "mean_queue"]]
    assert np.allclose(means, expected, rtol=1e-9, atol=1e-12)
    least = means.sum(axis="columns").min()
    others = used.drop(means.index)[["utilisation", "mean_queue"]].sum(axis="columns")
    assert (others <= least + 1e-9).all(), "it has the busiest"


def test_a_part_of_the_time_is_exact_in_a_serial_cell_and_may_pass_1_in_a_fair_one() -> None:
    peaks = {}
    for discipline in ("serial", "fair"):
        cell = {"network.cell.discipline": {"name": discipline}, "topology.devices": 10, "stop.rounds": 5}
        table = loads(simulated(cell))
        assert table.groupby(["link", "direction"])["utilisation"].mean().max() <= 1.0 + 1e-9
        peaks[discipline] = table["utilisation"].max()
    assert peaks["serial"] == pytest.approx(1.0) and peaks["fair"] > 1.1


@given(
    spans=st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100), st.floats(0, 1)), min_size=1, max_size=20),
)
def test_what_is_spread_over_time_is_where_a_plain_loop_puts_it(spans: list[tuple[float, float, float]]) -> None:
    trace, link = Trace(), Link(0, ("hall",), access=True, medium=Medium(tuple))
    for number, (begin_s, length_s, share) in enumerate(spans):
        row = (number, 0, 0, True, True, begin_s, begin_s + length_s, 0.0, share * length_s, 1.0, 0.0, 0.0, 0)
        trace.hops.append(row)
    table = link_loads_table(trace, [], [link], duration_s=200.0)
    width_s = 200.0 / BINS
    expected = np.zeros(BINS)
    for begin_s, length_s, share in spans:
        for place in range(BINS):
            from_s, until_s = max(begin_s, place * width_s), min(begin_s + length_s, (place + 1) * width_s)
            expected[place] += share * max(0.0, until_s - from_s) / width_s
    found = table["utilisation"] if len(table) else np.zeros(BINS)
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_serial_cell_is_full_while_two_uploads_follow_each_other() -> None:
    """Both ways are apart: up from 10 to 26 s, of 27 s."""
    table = loads(simulated())
    up = table[(table["link"] == "cell station") & (table["direction"] == "uplink")]
    full = up[(up["start_s"] >= 10.0) & (up["end_s"] <= 26.0)]
    assert np.allclose(full["utilisation"], 1.0) and len(full) > BINS / 2
    assert np.allclose(up[up["end_s"] <= 10.0]["utilisation"], 0.0)


def test_where_nothing_takes_time_there_is_no_load() -> None:
    assert len(link_loads_table(Trace(), [], [], duration_s=0.0)) == 0


# -- who is late -------------------------------------------------------------------------------------------------------


def test_a_slow_client_closes_each_round_and_is_late_by_what_it_takes_longer() -> None:
    """Three of 17 s, and one that works for 18 s in place of 5."""
    stations = hall(a="hall", b="hall", c="hall", d="hall")
    stations["topology"]["nodes"]["c"]["device"] = "slow"
    classes = {
        name: {"compute": {"name": "per_sample", "seconds_per_sample": seconds}}
        for name, seconds in (("fast", 0.5), ("slow", 1.8))
    }
    devices = {"classes": classes, "default": "fast"}
    world = simulated(NO_CONTENTION | stations | {"devices": devices, "stop.rounds": 4})
    pieces = critical_paths(world.trace)
    table = stragglers_table(world.trace, pieces, ["a", "b", "c", "d"]).set_index("client")
    assert list(table.index) == ["c", "a", "b", "d"]
    assert table["closed"].tolist() == [4, 0, 0, 0]
    assert table["rounds"].tolist() == [4] * 4
    assert table["critical_s"].tolist() == [120.0, 0.0, 0.0, 0.0]
    assert table["lateness_mean_s"].tolist() == table["lateness_median_s"].tolist() == [13.0, 0.0, 0.0, 0.0]


def test_who_never_came_home_is_named_when_it_closed_a_round() -> None:
    fault = {"faults": {"scheduled": [{"node": "sensor-1", "at_s": 2.0, "for_s": 1.0}], "messages": "lose"}}
    world = simulated(NO_CONTENTION | fault | {"topology.devices": 1})
    row = stragglers_table(world.trace, critical_paths(world.trace), ["sensor-1"]).iloc[0]
    assert (row["closed"], row["rounds"], row["critical_s"]) == (1, 0, 2.0)
    assert math.isnan(row["lateness_mean_s"])


def test_of_many_clients_only_the_worst_are_listed() -> None:
    world = simulated(NO_CONTENTION | {"topology.devices": MOST_STRAGGLERS + 5})
    names = [client.name for client in world.clients]
    table = stragglers_table(world.trace, critical_paths(world.trace), names)
    assert len(table) == MOST_STRAGGLERS and table["closed"].iloc[0] == 1


def test_a_trace_without_rounds_has_tables_without_rows() -> None:
    trace = Trace()
    assert len(critical_path_table(trace, [])) == len(pieces_table([], [], [])) == 0
    assert len(stragglers_table(trace, [], ["a"])) == 0


# -- in a run folder ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    protocols = [{"name": "fedavg", "fraction": 1.0, "label": "NA"}, {"name": "fedprox", "fraction": 0.5, "mu": 0.1}]
    changes = {"protocols": protocols, "seeds": [1, 2], "stop": {"rounds": 2}}
    return run(scenario(changes), out=tmp_path_factory.mktemp("run") / "run")


def test_what_is_read_back_adds_up(results: Results) -> None:
    path, pieces = results.critical_path, results.critical_pieces
    assert len(path) == len(results.rounds) == 8
    parts = path.filter(regex="_s$").drop(columns=["start_s", "end_s"]).sum(axis="columns")
    assert np.allclose(parts, path["end_s"] - path["start_s"], rtol=1e-12)
    assert np.array_equal(path["end_s"], results.rounds["sim_time_s"])
    each = (
        pieces.assign(took_s=pieces["end_s"] - pieces["start_s"]).groupby(["protocol", "seed", "part"])["took_s"].sum()
    )
    assert each["NA", 1, "airtime"] == pytest.approx(
        path[(path["protocol"] == "NA") & (path["seed"] == 1)]["airtime_s"].sum()
    )
    assert set(results.stragglers["client"]) == {"sensor-1", "sensor-2"}
    assert set(results.rounds["closed_by"]) <= {"sensor-1", "sensor-2"}
    shares = parts_of_rounds([results])
    assert shares["protocol"].tolist() == ["NA", "fedprox"]
    assert np.allclose(shares.drop(columns=["run", "protocol", "round_s"]).sum(axis="columns"), 1.0)


def test_explain_prints_three_tables(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(results.folder), "--most", "1"]) == 0
    first, second, third = (table.splitlines() for table in capsys.readouterr().out.split("\n\n")[1::2])
    assert first[0] == "| protocol | round | queueing | on the air | on wires | training |"
    assert first[2].startswith("| NA       |  27 s |")  # two in a serial cell, as their golden trace has it
    assert first[3].startswith("| fedprox  |  19 s |") and "63.2 %" in first[3]  # 12 of 19 s
    assert second[0] == "| protocol | client   | closed | on the path | lateness |" and len(second) == 4
    assert third[0].startswith("| protocol | link         | direction | utilisation |") and len(third) == 4


def test_several_runs_are_told_apart(results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = run(scenario({"name": "other"}), out=tmp_path / "other")
    assert main(["explain", str(results.folder), str(other.folder)]) == 0
    said = capsys.readouterr().out
    assert "| run " in said and "other" in said


def test_a_run_without_rounds_has_nothing_to_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run(scenario({"stop": {"sim_time_s": 1.0}}), out=tmp_path / "run")
    assert main(["explain", str(results.folder)]) == 2
    assert "no round has ended" in capsys.readouterr().err


def test_rounds_that_take_no_time_are_made_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run(scenario(NO_TIME | {"stop": {"rounds": 2}}), out=tmp_path / "run")
    assert main(["explain", str(results.folder)]) == 0
    assert "| protocol | round |\n" in capsys.readouterr().out
    assert main(["plot", str(results.folder)]) == 0
    names = {Path(line).stem for line in capsys.readouterr().out.splitlines()}
    assert "overview" in names and not names & {"where_time_goes", "link_loads"}


def test_a_folder_that_has_lost_a_table_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run(scenario(), out=tmp_path / "run")
    (results.folder / "critical_path.csv").unlink()
    assert main(["explain", str(results.folder)]) == 2
    said = capsys.readouterr().err
    assert "has lost its critical_path.csv" in said and said.count("\n") == 1
    assert len(load_results(results.folder).stragglers) == 2


def test_a_run_of_an_older_version_has_lost_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run(scenario(), out=tmp_path / "run")
    for name in ("critical_path.csv", "critical_pieces.parquet", "stragglers.csv", "link_loads.csv"):
        (results.folder / name).unlink()
    version = results.manifest["fedsim"]
    assert main(["explain", str(results.folder)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"fedsim: the run in {results.folder} was made by fedsim {version}, a version that did not ")
    assert "write critical_path.csv; run the scenario again" in said and said.count("\n") == 1


def test_plot_draws_them(results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(results.folder), "--out", str(tmp_path), "--format", "svg"]) == 0
    names = {Path(line).name for line in capsys.readouterr().out.splitlines()}
    assert {"where_time_goes.svg", "link_loads.svg"} <= names
    drawn = (tmp_path / "where_time_goes.svg").read_text()
    assert "<!-- training -->" in drawn and "<!-- deadline -->" not in drawn
    assert "<!-- cell station, up -->" in (tmp_path / "link_loads.svg").read_text()
