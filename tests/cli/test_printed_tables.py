"""A table keeps every number, however narrow the terminal; on a pipe it is Markdown in ASCII."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from tiny_results import rounds_of, summary_of, write_results, write_sweep

from fedsim.cli.tables import markdown, show_cells, show_sweep
from fedsim.experiment.compare import compare
from fedsim.experiment.sweep.results import SweepResults, load_sweep
from fedsim.viz.tables import comparison_cells

CELLS = pd.DataFrame(
    {"protocol": ["fedavg", "[bold]mine|2"], "accuracy": ["0.912 ± 0.004", ""], "inference": ["", "152 µs"]}
)


def printed(
    cells: pd.DataFrame, width: int, left: tuple[str, ...] = ("run", "protocol"), apart: tuple[str, ...] = ("run",)
) -> str:
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=width)
    show_cells(cells, left=left, apart=apart, console=console)
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())


@pytest.fixture
def crowded(tmp_path: Path) -> pd.DataFrame:
    """Every column but energy, three seeds that all differ."""
    rows = [
        summary_of(
            rounds_of(protocol, seed, [0.5 + seed / 10], round_s=4321.0 * seed, round_bytes=12.3e6 * seed),
            time_to_target_s=3456.0 * seed,
            bytes_to_target=1.5e6 * seed,
        )
        for protocol, seed in itertools.product(("fedavg", "fedprox", "centralised"), (1, 2, 3))
    ]
    return comparison_cells(compare([write_results(tmp_path / "run", [rounds_of("x", 1, [0.5])], summary=rows)]))


def of_two_runs(cells: pd.DataFrame) -> pd.DataFrame:
    parts = [cells.assign(run=name) for name in ("a first run", "a second run")]
    return pd.concat(parts, ignore_index=True)[["run", *cells]]


def test_a_wide_terminal_has_a_row_for_each_protocol(crowded: pd.DataFrame) -> None:
    lines = printed(crowded, 200).splitlines()
    assert len(lines) == 2 + 3
    for line, (_, row) in zip(lines[2:], crowded.iterrows(), strict=True):
        assert all(cell in line for cell in row), line


def test_a_terminal_of_100_columns_holds_the_fullest_comparison_unbroken(crowded: pd.DataFrame) -> None:
    text = printed(crowded, 100)
    for cell in itertools.chain(*crowded.to_numpy()):
        mean, _, width = cell.partition(" ± ")
        assert mean in text
        assert not width or f"± {width.split()[0]}" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("width", [20, 60, 100])
@pytest.mark.parametrize("runs", [1, 2])
def test_no_word_and_no_number_with_its_unit_is_ever_broken(crowded: pd.DataFrame, runs: int, width: int) -> None:
    text = printed(crowded if runs == 1 else of_two_runs(crowded), width)
    for cell in itertools.chain(*crowded.to_numpy(), *map(str.split, crowded)):
        mean, _, interval = cell.partition(" ± ")
        half_width, _, unit = interval.partition(" ")
        for unbroken in (f"{mean} {unit}".strip(), f"± {half_width}" if half_width else ""):
            assert re.search(rf"(?<!\S){unbroken}(?!\S)", text), unbroken


def test_a_cell_begins_on_the_line_of_its_row(crowded: pd.DataFrame) -> None:
    lines = printed(crowded, 100).splitlines()
    for _, row in crowded.iterrows():
        (line,) = (line for line in lines if line.startswith(f"{row['protocol']} "))
        assert line.split()[2] == row["accuracy"].split()[0]


def test_runs_that_fit_share_a_table_and_others_get_one_each(crowded: pd.DataFrame) -> None:
    both = of_two_runs(crowded)
    assert printed(both, 200).count("protocol") == 1
    lines = printed(both, 100).splitlines()
    assert [line for line in lines if line in {"a first run", "a second run"}] == ["a first run", "a second run"]
    assert sum("protocol" in line for line in lines) == 2
    assert max(map(len, lines)) <= 100


def test_a_runs_own_table_leaves_out_what_only_other_runs_have(crowded: pd.DataFrame) -> None:
    both = of_two_runs(crowded)
    both.loc[both["run"] == "a second run", "loss"] = ""
    assert printed(both, 100).count("loss") == 1


@pytest.fixture
def sweep(tmp_path: Path) -> SweepResults:
    """Two keys with several values each, and one with a single value."""
    rows = [
        [{"profile": profile}, fraction, "one"] for profile in ("nb_iot_nb1", "lte_m_m1") for fraction in (0.1, 0.3)
    ]
    keys = ["network.cell.radio", "protocols.fedavg.fraction", "model.name"]
    return load_sweep(write_sweep(tmp_path / "study", keys, rows))


def test_what_is_the_same_in_all_rows_of_a_sweep_stands_once_above_them(
    sweep: SweepResults, capsys: pytest.CaptureFixture[str]
) -> None:
    show_sweep(sweep)
    same, further, blank, head, _, *rows = capsys.readouterr().out.splitlines()
    assert same.startswith("In all rows: model.name one; protocol fedavg; simulated time 10 s; ")
    assert further == "rounds 1" and blank == ""
    assert [cell.strip() for cell in head.split("|")] == ["", "cell.radio", "fedavg.fraction", "accuracy", "loss", ""]
    assert len(rows) == 4 and len(same) <= 100
    show_sweep(sweep, format="markdown")
    assert "In all rows" not in (pasted := capsys.readouterr().out) and "model.name" in pasted
    show_sweep(sweep, format="csv")
    assert capsys.readouterr().out.startswith("cell.radio,fedavg.fraction,model.name,run,")


def test_a_sweep_of_one_row_is_all_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_sweep(load_sweep(write_sweep(tmp_path / "one", ["training.epochs"], [[1]])))
    assert capsys.readouterr().out.startswith("| training.epochs | protocol | ")


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (80, []),
        (45, ["cell.radio=nb", "cell.radio=lte"]),
        (25, ["cell.radio=nb, fraction=0.1", "cell.radio=nb, fraction=0.3", "cell.radio=lte, fraction=0.1"]),
    ],
)
def test_a_narrow_terminal_has_a_table_for_each_value_of_as_many_keys_as_it_takes(
    width: int, titles: list[str]
) -> None:
    keys = {"cell.radio": ["nb", "nb", "lte"], "fraction": ["0.1", "0.3", "0.1"]}
    cells = pd.DataFrame({**keys, "accuracy": ["0.912"] * 3, "simulated time": ["1.20 h"] * 3, "uplink": ["1 MB"] * 3})
    text = printed(cells, width, left=tuple(keys), apart=tuple(keys))
    assert [line for line in text.splitlines() if "=" in line] == titles
    assert text.count("accuracy") == max(1, len(titles)) and text.count("0.912") == 3


def test_markup_in_a_label_is_only_text() -> None:
    assert "[bold]mine|2" in printed(CELLS, 80)


def test_a_pipe_gets_markdown_in_ascii() -> None:
    assert markdown(CELLS, left=("protocol",)) == (
        "| protocol      |        accuracy | inference |\n"
        "| ------------- | --------------: | --------: |\n"
        "| fedavg        | 0.912 +/- 0.004 |           |\n"
        "| [bold]mine\\|2 |                 |    152 us |\n"
    )


def test_standard_output_that_is_no_terminal_is_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show_cells(CELLS, left=("protocol",))
    assert capsys.readouterr().out == markdown(CELLS, left=("protocol",))
