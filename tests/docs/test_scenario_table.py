"""docs/scenario_table.py runs scenarios, keeps what they end with, and writes the page about them."""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
import scenario_table
from writers import scenarios

from fedsim.cli import main as fedsim

TRAINS = """\
# A plant.
#
# Expected on seeds 1 to 3, and by hand:
#   fedavg        accuracy 0 to 1  loss 0 to 9  traffic 10.4 kB
#   "all, twice"  accuracy 0 to 1  time 20.8 s
name: small-{0}
description: Two rounds
seeds: [7, 8]
stop: {{rounds: 2}}
topology: {{name: star, devices: 4}}
network: {{cell: {{radio: {{name: fixed, uplink_bps: 8.0e+3, downlink_bps: .inf}}}}, link: {{rate_bps: .inf}}}}
devices: {{classes: {{sensor: {{compute: {{name: per_sample, seconds_per_sample: 1.0e-9}}}}}}}}
model: {{name: softmax}}
training: {{learning_rate: 0.1, batch_size: 32}}
protocols:
  - {{name: fedavg, clients: 1}}
  - {{name: fedavg, label: "all, twice", clients: 4}}
"""
STUDY = """\
# Expected by hand:
#   fedavg  time 20 s  traffic 4 kB
name: study
learn: false
stop: {rounds: 2}
topology: {name: star, devices: 1}
network: {cell: {radio: {name: fixed, uplink_bps: 800.0, downlink_bps: .inf}}, link: {rate_bps: .inf}}
devices: {classes: {sensor: {compute: {name: per_sample, seconds_per_sample: 1.0e-9}}}}
data: {name: declared, samples_per_client: 1}
model: {name: declared, parameters: 250}
training: {learning_rate: 0.1, batch_size: 1}
protocols: [{name: fedavg, clients: 1}]
"""
PAGE = "# Hello\n\n<!-- generated: scenarios shipped -->\n<!-- end of generated -->\n\nBye.\n"
MODEL_BYTES = 4 * (64 * 10 + 10)
"""Softmax regression on 8 x 8 pixels: 2.6 s at 8 kbit/s."""


def run_here(words: Sequence[str]) -> tuple[int, str]:
    """A `fedsim run` in this process, as one of its own takes seconds to begin."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        return fedsim(["run", *words, "--executor", "serial"]), errors.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of two scenarios that train, and one that does not."""
    for name, text in {"b": TRAINS.format("b"), "a": TRAINS.format("a"), "study": STUDY}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "README.md").write_text(PAGE)
    (tmp_path / "cases.md").write_text(
        "# Cases\n\n<!-- generated: ended It took {study/fedavg/time}. -->\n<!-- end of generated -->\n"
    )
    for name, path in {"FOLDER": "", "MEASURED": "measured.csv", "PAGE": "README.md", "CASES": "cases.md"}.items():
        monkeypatch.setattr(scenarios, name, tmp_path / path)
    monkeypatch.setattr(scenario_table, "fedsim_run", run_here)
    forget()
    return tmp_path


def forget() -> None:
    """What is known of the scenarios, because a file has changed."""
    scenarios.scenario_of.cache_clear()
    scenarios.network_text.cache_clear()


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    forget()


def lines(folder: Path) -> dict[str, list[str]]:
    """The cells of the table on the page, by scenario."""
    _, _, *rows = [row for row in (folder / "README.md").read_text().splitlines() if row.startswith("|")]
    cells = ([cell.strip() for cell in row.split("|")[1:-1]] for row in rows)
    return {first.partition("]")[0][1:]: [first, *others] for first, *others in cells}


def test_a_scenario_is_measured_on_three_seeds_whatever_seeds_it_has(folder: Path) -> None:
    assert scenario_table.main(["a"]) == 0
    rows = scenarios.measured()
    assert list(rows.columns) == scenarios.COLUMNS
    assert [(row.seed, row.protocol, row.metric) for row in rows.itertuples()] == [
        (seed, protocol, metric)
        for seed in (1, 2, 3)
        for protocol, metric in [("fedavg", "accuracy"), ("fedavg", "loss"), ("all, twice", "accuracy")]
    ]
    assert rows["transfer_bytes"].tolist() == [4 * MODEL_BYTES, 4 * MODEL_BYTES, 16 * MODEL_BYTES] * 3
    assert rows["sim_time_s"].tolist() == pytest.approx([5.2, 5.2, 20.8] * 3)
    assert len(set(rows["value"])) == 9  # each seed has its own
    one, loss, four = (rows["value"][place::3].mean() for place in range(3))
    *cells, minutes = lines(folder)["a"]
    assert minutes == f"{max(2 * rows['host_s'].mean() / 60, 0.1):.1f}<br>(2&nbsp;seeds)"
    assert cells == [
        "[a](a.yaml)<br>Two rounds",
        "[digits](../docs/data/digits.md)",
        "8&nbsp;kbit/s up, no limit down<br>4&nbsp;devices in one cell",
        "fedavg<br>all,&nbsp;twice",
        f"{100 * one:.1f}&nbsp;%,&nbsp;loss&nbsp;{loss:.2f}<br>{100 * four:.1f}&nbsp;%",
        "5.20&nbsp;s<br>20.8&nbsp;s",
        "10.4&nbsp;kB<br>41.6&nbsp;kB",
    ]
    page = (folder / "README.md").read_text()
    assert page.startswith("# Hello\n") and page.endswith("\nBye.\n")


def test_a_study_of_the_network_is_run_once_and_has_no_result(folder: Path) -> None:
    assert scenario_table.main(["study"]) == 0
    [row] = scenarios.measured().to_dict("records")
    assert (row["seed"], row["metric"], row["sim_time_s"], row["transfer_bytes"]) == (1, "", 20.0, 4000)
    assert math.isnan(row["value"])
    assert lines(folder)["study"][3:7] == ["fedavg", "", "20&nbsp;s", "4&nbsp;kB"]
    assert lines(folder)["a"][3:] == ["fedavg<br>all,&nbsp;twice", "", "", "", "not measured"]
    assert "-->\nIt took 20 s.\n\n<!--" in (folder / "cases.md").read_text()


def test_rows_of_other_scenarios_are_kept_unless_these_are_gone(folder: Path) -> None:
    old = {"protocol": "fedavg", "seed": 1, "metric": "accuracy", "value": 0.5, "sim_time_s": 1.5, "transfer_bytes": 7}
    rows = [{"scenario": name, **old, "host_s": 3, "settings": "0123e456"} for name in ("gone", "b", "study")]
    scenario_table.write_rows(pd.DataFrame(rows))
    kept = next(line for line in scenarios.MEASURED.read_text().splitlines() if line.startswith("b,"))
    assert scenario_table.main(["study"]) == 0
    text = scenarios.MEASURED.read_text()
    assert [line.partition(",")[0] for line in text.splitlines()] == ["scenario", "b", "study"]
    assert kept in text.splitlines()
    assert ",0.5," not in text.splitlines()[-1]


def test_what_is_not_as_the_header_says_is_printed_and_yet_measured(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder / "study.yaml", "time 20 s  traffic 4 kB", "time 30 s  traffic 4 kB")
    assert scenario_table.main(["study"]) == 1
    said = capsys.readouterr()
    assert said.err == "study, fedavg, seed 1: time 20 s is not within 10 % of the 30 s by hand\n"
    assert said.out.startswith("[1/1] study  seed 1: ")
    assert len(scenarios.measured()) == 1


def test_a_scenario_that_fails_keeps_its_rows_and_others_go_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scenario_table.main(["study"]) == 0
    before = scenarios.measured().drop(columns="host_s")
    (folder / "broken.yaml").write_text(STUDY.replace("clients: 1", "clients: 2"))
    assert scenario_table.main(["broken", "study"]) == 1
    assert "protocols[0].clients: 2 must be at most 1" in capsys.readouterr().err
    pd.testing.assert_frame_equal(scenarios.measured().drop(columns="host_s"), before)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["studdy"], "there is no scenarios/studdy.yaml; did you mean 'study'?"),
        (["--table", "study"], "--table runs nothing: leave the names out"),
    ],
)
def test_a_wrong_command_is_refused(
    folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scenario_table.main(words) == 2
    assert capsys.readouterr().err == f"scenario_table.py: {said}\n"


def test_the_page_is_written_without_running_anything(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_table, "fedsim_run", None)
    assert scenario_table.main(["--table"]) == 0
    assert list(lines(folder)) == ["a", "b", "study"]
    assert not scenarios.MEASURED.exists()


def test_without_the_folder_of_files_only_the_others_are_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder / "a.yaml", "model:", "data: {name: cwru}\nmodel:")
    (folder / "b.yaml").unlink()
    monkeypatch.delenv("FEDSIM_DATA", raising=False)
    assert scenario_table.main([]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "a is left out, and its rows stay: it needs files, and FEDSIM_DATA names no folder"
    assert said[1].startswith("[1/1] study ")
    assert "needs files" in lines(folder)["a"][1]


@pytest.mark.long
def test_the_command_is_given_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("learn: 3\n")
    status, errors = scenario_table.fedsim_run([str(tmp_path / "wrong.yaml")])
    assert (status, errors.startswith("fedsim: ")) == (2, True)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# A plant.", "# Another plant.", True),
        ("description: Two rounds", "description: Three", True),
        ("name: small-a", "name: small", True),
        ("seeds: [7, 8]", "seeds: [7]", True),
        ("rounds: 2", "rounds: 3", False),
        ("clients: 4", "clients: 3", False),
        ('label: "all, twice"', "label: all", False),
    ],
)
def test_a_scenario_has_to_be_measured_again_when_a_number_may_be_another_one(
    folder: Path, old: str, new: str, same: bool
) -> None:
    before = scenarios.settings_of(scenarios.scenario_of("a"))
    change(folder / "a.yaml", old, new)
    assert (scenarios.settings_of(scenarios.scenario_of("a")) == before) == same


def test_a_line_has_means_over_seeds_each_counted_once(folder: Path) -> None:
    """Of 10 and 20 s, 1 and 3 kB, accuracies of 0.5 and 0.7; a model that diverged on one seed has no mean."""
    common = {"scenario": "a", "protocol": "fedavg", "host_s": 60}
    rows = pd.DataFrame(
        [
            {
                **common,
                "seed": seed,
                "metric": metric,
                "value": value,
                "sim_time_s": time_s,
                "transfer_bytes": size_bytes,
            }
            for seed, time_s, size_bytes, values in [(1, 10.0, 1000, (0.5, 1.25)), (2, 20.0, 3000, (0.7, math.nan))]
            for metric, value in zip(("accuracy", "loss"), values, strict=True)
        ]
    )
    said = ["60.0&nbsp;%,&nbsp;loss&nbsp;nan<br>", "15&nbsp;s<br>", "2&nbsp;kB<br>", "2.0<br>(2&nbsp;seeds)"]
    assert scenarios.line("a", rows)[4:] == said


def test_a_scenario_takes_as_long_as_all_of_its_seeds(folder: Path) -> None:
    """30 and 90 s for a seed, once for each of two rows: two seeds take two minutes."""
    rows = pd.DataFrame({"seed": [1, 1, 2, 2], "host_s": [30, 30, 90, 90]})
    assert scenarios.minutes(rows, scenarios.scenario_of("a")) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("header", "time"),
    [
        ("# A table.\n# Real time: 24 minutes on one core; --resume goes on\n#", "24 minutes on one core"),
        ("# Real time: 3 days on 2 cores (from 2 of 500 rounds)\n#", "3 days on 2 cores (from 2 of 500 rounds)"),
        ("#   fedsim run scenarios/paper/x.yaml  # Real time: 3 minutes on 2 cores", ""),
        ("#   fedsim run scenarios/paper/x.yaml  # 3 minutes on 2 cores", ""),
        ("name: x\ndescription: its size\n# Real times vary.", ""),
    ],
)
def test_the_real_time_of_a_paper_is_what_the_header_states(tmp_path: Path, header: str, time: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{header}\n")
    assert scenarios.stated_time(path) == time


@pytest.mark.parametrize("path", sorted((scenarios.FOLDER / "paper").glob("*.yaml")), ids=lambda path: path.stem)
def test_each_header_of_a_paper_says_its_real_time_once_and_in_one_way(path: Path) -> None:
    """A number, measured in whole or about so much from a part; a unit alone where nobody has measured it."""
    header = path.read_text("utf-8").partition("\nname:")[0]
    said = [line for line in header.splitlines() if "real time" in line.lower()]
    measured = r"\d+(\.5)? (second|minute|hour)s? on (one core|2 cores)"
    estimated = r"about \d+(\.5)? (minute|hour|day|week)s? on (one core|2 cores) \(from [^)]+\)"
    assert len(said) == 1
    assert re.fullmatch(rf"# Real time: ({measured}|{estimated})(; --resume goes on)?", said[0]), said
    assert not re.search(r"\.yaml\b.* # .*\b(minutes?|min|hours?|days?|weeks?)\b", header), "it is said once"
    assert not re.search(r"[Ii]t takes \w+ (on|hours|days)|in (ten )?minutes:", header)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("digits", "`lte_m_m2`<br>80&nbsp;devices in 10 cells"),
        ("far_sensors_lte_m", "`lte_m_m1`<br>100&nbsp;devices in one cell"),
        ("agv_with_faults", "`nr_38803` 20&nbsp;MHz<br>40&nbsp;devices in 4 cells"),
        ("plant_mixed", "`lte_m_m1`, `nr_100mhz_private`<br>12&nbsp;devices in 2 cells"),
    ],
)
def test_a_network_is_its_radios_and_how_many_share_them(name: str, said: str) -> None:
    assert scenarios.network_text(name) == said
