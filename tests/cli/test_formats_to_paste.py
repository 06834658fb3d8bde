"""Comparisons to be pasted: hostile names stay names, and nothing but the table is on standard output."""

from __future__ import annotations

import csv
import io
import itertools
import re
from pathlib import Path

import pandas as pd
import pytest
from tiny_results import rounds_of, summary_of, write_results

import fedsim
from fedsim.cli import main
from fedsim.cli.paper_formats import latex, markdown_text
from fedsim.cli.tables import show_comparison

HOSTILE = r"50 % & $x_1$ #{a}~b^c\d | `e` *f* <g> [h](i)"
IN_LATEX = r"50 \% \& \$x\_1\$ \#\{a\}\textasciitilde b\textasciicircum c\textbackslash d | `e` *f* <g> [h](i)"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three seeds; the hostile protocol reached 0.8 on two, the other one on none."""
    rows, runs = [], []
    for protocol, seed in itertools.product((HOSTILE, "plain"), (1, 2, 3)):
        run = rounds_of(protocol, seed, [0.5 + seed / 10], round_s=3600.0 * seed, round_bytes=3e6)
        reached = 1800.0 * seed if protocol == HOSTILE and seed < 3 else float("nan")
        runs.append(run)
        rows.append(summary_of(run, target_accuracy=0.8, time_to_target_s=reached))
    write_results(tmp_path / "run", runs, summary=rows)
    return tmp_path / "run"


def printed(folder: Path, form: str, capsys: Capture, *words: str) -> str:
    assert main(["compare", str(folder), "--format", form, *words]) == 0
    return capsys.readouterr().out


def test_every_sign_that_latex_reads_as_its_own_is_escaped_in_cells_and_in_heads() -> None:
    text = latex(pd.DataFrame({"protocol": [HOSTILE], HOSTILE: ["0.91"]}), left=("protocol",))
    head, row = (line for line in text.splitlines() if line.endswith(r"\\"))
    assert head == rf"protocol & {IN_LATEX} \\"
    assert row == rf"{IN_LATEX} & $0.91$ \\"


@pytest.mark.parametrize("sign", [*r"&%$#_{}~^", "\\", "$$", r"\(x\)", r"\\"])
def test_no_sign_of_latex_gets_through_alone(sign: str) -> None:
    text = latex(pd.DataFrame({"protocol": [f"a{sign}b"]}), left=("protocol",))
    cell = text.splitlines()[4].removesuffix(r" \\")
    left_over = re.sub(r"\\(text[a-z]+ ?|[&%$#_{}])", "", cell)
    assert not re.search(r"[&%$#_{}~^\\]", left_over), cell


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("0.912 ± 0.004", r"$0.912 \pm 0.004$"),
        ("0.9", "$0.9$"),
        ("12,345", "$12{,}345$"),
        ("-0.5 ± 2", r"$-0.5 \pm 2$"),
        ("> 5.2 (1 of 3)", "$> 5.2$ (1 of 3)"),
        ("median 3.2 (2 of 3)", "median $3.2$ (2 of 3)"),
        ("0.9 ± 0.1 (2 of 3)", r"$0.9 \pm 0.1$ (2 of 3)"),
        ("2.50e+41 ± 3e+40", r"$2.50 \times 10^{41} \pm 3 \times 10^{40}$"),
        ("inf", r"$\infty$"),
        ("never (0 of 3)", "never (0 of 3)"),
        ("time, bytes", "time, bytes"),
        ("", ""),
    ],
)
def test_numbers_are_mathematics(cell: str, expected: str) -> None:
    text = latex(pd.DataFrame({"protocol": ["a"], "x": [cell]}), left=("protocol",))
    assert text.splitlines()[4] == rf"a & {expected} \\"


def test_markdown_escapes_what_it_would_read_as_its_own() -> None:
    assert markdown_text("a|b") == r"a\|b" and markdown_text("`c`") == r"\`c\`" and markdown_text("lte_m") == r"lte\_m"
    signs = r"\`*_[]<>|~$#&!"
    assert markdown_text(signs) == "".join(f"\\{sign}" for sign in signs)
    assert markdown_text(r"\|") == r"\\\|", "else the pipe would end the cell"


def test_a_markdown_table_has_as_many_cells_in_each_line(folder: Path, capsys: Capture) -> None:
    lines = printed(folder, "markdown", capsys).splitlines()
    assert len(lines) == 4
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(re.findall(r"\|", lines[1]))}
    assert markdown_text(HOSTILE) in lines[2]


def test_units_stand_in_the_heads_with_the_target(folder: Path, capsys: Capture) -> None:
    head, _, hostile, plain = printed(folder, "markdown", capsys).splitlines()
    assert "simulated time (h)" in head and "time to target 0.8 (h)" in head and "uplink (MB)" in head
    assert "| 0.700 ± 0.248 |" in plain
    assert " median 1 (2 of 3) |" in hostile and " > 2 (0 of 3) |" in plain


def test_latex_is_a_table_of_booktabs(folder: Path, capsys: Capture) -> None:
    lines = printed(folder, "latex", capsys, "--front").splitlines()
    assert lines[0] == r"% needs \usepackage{booktabs}"
    rules = [line for line in lines if line.startswith("\\")]
    begin = re.fullmatch(r"\\begin\{tabular\}\{(lr+)\}", rules[0])
    assert rules[1:] == [r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"]
    rows = [line for line in lines if line.endswith(r"\\")]
    assert begin and len(rows) == 3
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(begin[1]) - 1}
    assert r"$0.700 \pm 0.248$" in rows[2] and "simulated time (h)" in rows[0]


def test_further_tables_follow_with_their_titles(folder: Path, capsys: Capture) -> None:
    table = pd.read_csv(folder / "summary.csv").assign(macro_f1=0.5, recall_a_b=0.25)
    table.to_csv(folder / "summary.csv", index=False)
    text = printed(folder, "latex", capsys)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3
    assert "\n% Recall by class\n" in text and rf"& {IN_LATEX} &" in text and r"a\_b" in text
    text = printed(folder, "markdown", capsys)
    assert "\n\nRecall by class\n\n| class" in text and markdown_text("a_b") in text


def test_csv_on_standard_output_is_what_the_option_writes(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    text = printed(folder, "csv", capsys, "--csv", str(tmp_path / "numbers.csv"))
    assert text == (tmp_path / "numbers.csv").read_text(encoding="utf-8")
    first, *_ = csv.DictReader(io.StringIO(text))
    assert first["protocol"] == HOSTILE
    back = pd.read_csv(io.StringIO(text))
    pd.testing.assert_frame_equal(back, fedsim.compare([folder]), check_dtype=False)


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_a_terminal_gets_the_same_as_a_pipe(
    form: str, folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = printed(folder, form, capsys)
    monkeypatch.setenv("FORCE_COLOR", "1")
    show_comparison([fedsim.load_results(folder)], format=form)  # type: ignore[arg-type]
    assert capsys.readouterr().out == expected


def test_remarks_are_not_in_the_table(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    write_results(tmp_path / "other", [rounds_of("a", 1, [0.5])], name="other")
    assert main(["compare", str(folder), str(tmp_path / "other"), str(tmp_path), "--format", "latex"]) == 0
    captured = capsys.readouterr()
    assert "Remark" not in captured.out and "passed over" in captured.err
