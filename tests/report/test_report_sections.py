"""What a section does with what is rare: nothing was learned, a model diverged, lines are long, bands are wide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from small_studies import small_study
from tiny_results import rounds_of, summary_of

from fedsim.experiment.fronts import mark_fronts
from fedsim.experiment.means_over_seeds import means_over_seeds
from fedsim.experiment.results import Results
from fedsim.report.costs import costs
from fedsim.report.curves import curves
from fedsim.report.fronts import fronts
from fedsim.report.lines import Lines
from fedsim.report.parts import Picture, Section
from fedsim.report.waiting import waiting


def together(runs: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame, Lines]:
    """Rounds, their summary, and whose lines are whose."""
    rounds, summary = pd.concat(runs, ignore_index=True), pd.DataFrame(map(summary_of, runs))
    return rounds, summary, Lines(summary, rounds)


def learning(*runs: pd.DataFrame) -> Section:
    rounds, _, lines = together(runs)
    section = curves(rounds, lines)
    assert section is not None
    return section


def picture(section: Section | None, key: str) -> Picture:
    assert section is not None
    (found,) = [one for one in section.pictures if one.key == key]
    return found


def points(drawn: Picture) -> list[dict]:
    assert drawn.spec is not None
    return drawn.spec["datasets"]["points"]


def test_where_nothing_was_learned_only_costs_are_drawn() -> None:
    rounds, summary, lines = together([rounds_of(name, 1, [math.nan] * 3) for name in ("fedavg", "fedprox")])
    means = pd.DataFrame(means_over_seeds([("small", summary)]))
    assert curves(rounds, lines) is None and fronts(mark_fronts(means).drop(columns="run"), lines) is None
    assert [one.key for one in costs(summary, rounds, lines).pictures] == ["time-by-protocol", "traffic-by-protocol"]


def test_a_diverged_seed_is_told_and_its_infinite_loss_is_not_drawn() -> None:
    lost = rounds_of("fedavg", 2, [0.2, 0.3, 0.1, 0.1])
    lost["loss"] = [1.0, 2.0, math.inf, math.inf]
    section = learning(rounds_of("fedavg", 1, [0.2, 0.3, 0.4, 0.5]), lost, rounds_of("fedprox", 1, [0.2] * 4))
    assert section.remarks == [
        "fedavg diverged on 1 of 2 seeds: its loss became infinite, and its line ends before that."
    ]
    drawn = picture(section, "loss-over-rounds")
    assert [row["round"] for row in points(drawn) if row["line"] == 0] == [1, 2]
    assert "ends at the last round that all of its seeds reached" in drawn.caption


def test_a_line_of_one_seed_has_no_band() -> None:
    drawn = picture(learning(rounds_of("fedavg", 1, [0.2, 0.4])), "score-over-rounds")
    assert [(row["mean"], row["low"], row["high"]) for row in points(drawn)] == [(0.2, None, None), (0.4, None, None)]
    assert drawn.sheet.cells["test accuracy"].to_list() == ["0.200", "0.400"]


def test_bands_that_would_hide_the_lines_are_cut_and_the_caption_says_so() -> None:
    near, far = rounds_of("fedavg", 1, [0.4, 0.5, 0.6]), rounds_of("fedavg", 2, [0.5, 0.6, 0.7])
    drawn = picture(learning(near, far), "score-over-rounds")
    assert drawn.spec is not None
    low, high = drawn.spec["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert (low, high) == (pytest.approx(0.45 - 0.06), pytest.approx(0.65 + 0.06))  # 0.3 of the lines' height
    assert (points(drawn)[0]["low"], points(drawn)[2]["high"]) == (0.0, 1.0)
    assert "are cut; the table has them" in drawn.caption and "0.450 ± 0.635" in set(drawn.sheet.cells["test accuracy"])
    alike = rounds_of("fedavg", 2, [0.401, 0.501, 0.601])
    assert "are cut" not in picture(learning(near, alike), "score-over-rounds").caption


def test_long_lines_are_thinned_and_the_caption_says_so() -> None:
    scores = [0.5 + 0.3 * math.sin(number / 9) for number in range(2_500)]
    drawn = picture(learning(rounds_of("fedavg", 1, scores)), "score-over-rounds")
    assert len(points(drawn)) == len(drawn.sheet.cells) == 2_000
    assert (points(drawn)[0]["round"], points(drawn)[-1]["round"]) == (1, 2_500)
    assert max(row["mean"] for row in points(drawn)) == pytest.approx(max(scores), rel=1e-8)
    assert "thinned to 2,000 points each" in drawn.caption
    short = picture(learning(rounds_of("fedavg", 1, scores[:2_000])), "score-over-rounds")
    assert len(points(short)) == 2_000 and "thinned" not in short.caption


def test_an_axis_is_logarithmic_where_it_is_in_the_plots() -> None:
    quick, slow = rounds_of("fedavg", 1, [0.2, 0.4], round_s=9.0), rounds_of("fedgs", 1, [0.3, 0.5], round_s=100.0)
    rounds, summary, lines = together([quick, slow])
    means = mark_fronts(pd.DataFrame(means_over_seeds([("small", summary)]))).drop(columns="run")
    for drawn in (picture(curves(rounds, lines), "score-over-time"), picture(fronts(means, lines), "front-of-time")):
        assert drawn.spec is not None
        encodings = [layer["encoding"]["x"] for layer in drawn.spec["layer"]]
        (x,) = [one for one in {str(one): one for one in encodings if one.get("scale")}.values()]
        assert x["scale"]["type"] == "log" and x["axis"]["title"] == "simulated time (logarithmic)"
        assert '"20 s", "30 s", "1 min", "2 min"' in x["axis"]["labelExpr"]
        assert {1 / 3, 0.5, 1, 2} <= set(x["axis"]["values"])  # minutes
    assert "simulated time (logarithmic)" in picture(curves(rounds, lines), "score-over-time").caption
    assert "logarithmic" not in picture(learning(quick), "score-over-time").caption


def test_intervals_on_a_logarithmic_front_end_inside_it() -> None:
    runs = [
        *(rounds_of("fedavg", seed, [0.4], round_s=round_s) for seed, round_s in ((1, 1.0), (2, 9.0))),
        *(rounds_of("fedgs", seed, [0.5], round_s=100.0) for seed in (1, 2)),
    ]
    _, summary, lines = together(runs)
    means = mark_fronts(pd.DataFrame(means_over_seeds([("small", summary)]))).drop(columns="run")
    drawn = picture(fronts(means, lines), "front-of-time")
    assert drawn.spec is not None
    low, high = drawn.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    wide = points(drawn)[0]
    assert wide["left"] == pytest.approx(low, rel=1e-8) and 0 < low < wide["x"] < wide["right"] < high


def test_five_runs_of_several_protocols_have_charts_of_their_own() -> None:
    runs = [
        rounds_of(name, 1, [0.2, 0.4]).assign(run=run) for run in ("a", "b", "c", "d", "e") for name in ("one", "two")
    ]
    rounds = pd.concat(runs, ignore_index=True)
    summary = pd.DataFrame([{**summary_of(run), "run": run["run"].iloc[0]} for run in runs])
    section = curves(rounds, Lines(summary, rounds))
    assert section is not None and len(section.pictures) == 5 * 4
    assert [entry.name for entry in picture(section, "score-over-time-2").legend] == ["one, b", "two, b"]


def test_many_rounds_are_put_together_in_bars_that_the_caption_tells_of(tmp_path: Path) -> None:
    small = small_study(tmp_path / "run", rounds=125)
    drawn = picture(waiting(small, "", Lines(small.summary, small.rounds), ""), "rounds-of-1")
    assert "mean over 2 seeds, and over 3 rounds in each bar" in drawn.caption
    assert drawn.sheet.cells["round"].to_list()[-2:] == ["121 to 123", "124 to 125"]
    assert len(drawn.sheet.cells) == 42


def test_rounds_that_take_no_time_have_no_parts(tmp_path: Path) -> None:
    small = small_study(tmp_path / "run")
    parts = [name for name in small.critical_path if name.endswith("_s")]
    small.critical_path.assign(**dict.fromkeys(parts, 0.0)).to_csv(small.folder / "critical_path.csv", index=False)
    assert waiting(Results(small.folder), "", Lines(small.summary, small.rounds), "") is None


def test_a_run_of_an_earlier_version_has_no_parts_of_rounds(study: Results, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes((study.folder / "manifest.json").read_bytes())
    assert waiting(Results(tmp_path), "", Lines(study.summary, study.rounds), "") is None
