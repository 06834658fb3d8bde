"""The tutorial: its files and commands, in order and in one empty folder, answer as it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import FENCED, ROOT, columns, fenced
from writers import walkthrough

PAGE = ROOT / "docs/my_plant.md"
LEARNED = ("accuracy", "loss", "time to target", "bytes to target")
WORDS_A_MINUTE = 140


def settled(text: str) -> str:
    """A page's text without what is learned: its last digits are the processor's."""
    return re.sub(r"(?:^\|.*\n)+", lambda table: without_learned(table[0]), text, flags=re.MULTILINE)


def without_learned(table: str) -> str:
    return str({title: cells for title, cells in columns(table).items() if title not in LEARNED})


def accuracies(text: str) -> list[float]:
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    return [float(cell.split()[0]) for table in tables for cell in columns(table).get("accuracy", [])]


@pytest.mark.slow
def test_files_and_commands_in_order_answer_as_the_page_shows(tmp_path: Path) -> None:
    shown = PAGE.read_text(encoding="utf-8")
    now = walkthrough.walk(shown, tmp_path)
    assert settled(now) == settled(shown), "run `make docs`"
    assert accuracies(now) == pytest.approx(accuracies(shown), abs=0.03), "run `make docs`"
    assert len(accuracies(now)) == 6
    assert (tmp_path / "runs/my-plant/figures/overview.png").exists()


def test_a_section_replaces_its_like_and_a_new_one_goes_to_the_end() -> None:
    before = "name: a\nstop: {rounds: 1}   # one\ndevices:\n  classes:\n    sensor: {}\nlearn: false\n"
    after = walkthrough.with_sections(before, "devices:\n  default: b\nseeds: [1]\n")
    assert after == "name: a\nstop: {rounds: 1}   # one\ndevices:\n  default: b\nlearn: false\nseeds: [1]\n"


def test_an_answer_is_what_a_command_prints_and_why_it_failed(tmp_path: Path) -> None:
    page = "Write `a.yaml`:\n\n```yaml\nname: a\n```\n\n```console\n$ cat a.yaml\nold\n$ fedsim list protocol\n```\n"
    blocks = [match["content"] for match in FENCED.finditer(walkthrough.walk(page, tmp_path))]
    assert blocks[1].startswith("$ cat a.yaml\nname: a\n$ fedsim list protocol\nfedsim: ")


def test_a_reader_gets_through_in_ten_minutes() -> None:
    """Three minutes to paste the blocks and the commands, of which there are few; seven to read."""
    prose = FENCED.sub("", PAGE.read_text(encoding="utf-8"))
    commands = sum(block.count("\n$ ") + block.startswith("$ ") for block in fenced(PAGE, "console"))
    assert len(prose.split()) <= 7 * WORDS_A_MINUTE
    assert commands <= 24
