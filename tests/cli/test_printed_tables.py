"""A table keeps every number, however narrow the terminal; on a pipe it is Markdown in ASCII."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from tiny_results import rounds_of, summary_of, write_results

from fedsim.cli.tables import markdown, show_cells
from fedsim.experiment.compare import compare
from fedsim.viz.tables import comparison_cells

CELLS = pd.DataFrame({"protocol": ["fedavg", "[bold]mine|2"], "accuracy": ["0.912 ± 0.004", ""]})


def printed(cells: pd.DataFrame, width: int) -> str:
    terminal = io.StringIO()
    show_cells(cells, left=("run", "protocol"), console=Console(file=terminal, force_terminal=True, width=width))
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


def test_a_narrow_terminal_folds_and_cuts_nothing(crowded: pd.DataFrame) -> None:
    text = printed(crowded, 60)
    assert "…" not in text
    for protocol in crowded["protocol"]:
        letters = "".join(line.split(" ")[0] for line in text.splitlines())
        assert protocol in letters


def test_markup_in_a_label_is_only_text() -> None:
    assert "[bold]mine|2" in printed(CELLS, 80)


def test_a_pipe_gets_markdown_in_ascii() -> None:
    assert markdown(CELLS, left=("protocol",)) == (
        "| protocol      |        accuracy |\n"
        "| ------------- | --------------: |\n"
        "| fedavg        | 0.912 +/- 0.004 |\n"
        "| [bold]mine\\|2 |                 |\n"
    )


def test_standard_output_that_is_no_terminal_is_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show_cells(CELLS, left=("protocol",))
    assert capsys.readouterr().out == markdown(CELLS, left=("protocol",))
