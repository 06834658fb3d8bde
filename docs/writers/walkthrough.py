"""Walks through a page whose files and commands build on each other: all of them in order, in one empty folder.

The page says so with ``MARK``. A block of Python or YAML is a file, which the paragraph before the block names. YAML
comes section by section: a section replaces the one of the same name, or goes to the end of the file. In a block of the
language ``console``, each line after ``$`` is a command, and the lines below it become what the command answers.

Left out: progress and remarks, which commands write to standard error. An error message is shown.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import subprocess
import tempfile
from pathlib import Path

from fedsim import cli
from writers.markdown import ROOT

MARK = "<!-- walkthrough -->\n"
BLOCK = re.compile(r"(?P<begin>^```(?P<language>\w+)\n)(?P<content>.*?)(?P<end>^```$)", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w-]+\.(?:py|yaml))`")
SECTION = re.compile(r"^(?P<key>\w+):.*\n(?:[ #].*\n)*", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Every walkthrough, with the content that it should have now."""
    written = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        if page.startswith(MARK):
            with tempfile.TemporaryDirectory() as folder:
                written[path] = walk(page, Path(folder))
    return written


def walk(page: str, folder: Path) -> str:
    """The text of *page* with the answers that its commands give now; its files are left in *folder*."""

    def step(match: re.Match[str]) -> str:
        content = match["content"]
        if match["language"] == "console":
            content = "".join(f"$ {line}\n{answer(line)}" for line in commands(content))
        else:
            path = Path(FILE.findall(page[: match.start()].rstrip().rpartition("\n\n")[2])[0])
            before = path.read_text(encoding="utf-8") if path.suffix == ".yaml" and path.exists() else ""
            path.write_text(with_sections(before, content) if before else content, encoding="utf-8")
        return match["begin"] + content + match["end"]

    with contextlib.chdir(folder):
        return BLOCK.sub(step, page)


def commands(console: str) -> list[str]:
    return [line.removeprefix("$ ") for line in console.splitlines() if line.startswith("$ ")]


def with_sections(scenario: str, sections: str) -> str:
    """*scenario* with *sections* in place of its own ones of the same names, and with new ones at the end.

    >>> print(with_sections("a: 1\\nb:\\n  c: 2\\n", "b: {c: 3}\\nd: 4\\n"), end="")
    a: 1
    b: {c: 3}
    d: 4
    """
    changed = {match["key"]: match[0] for match in SECTION.finditer(sections)}
    old = {match["key"]: match[0] for match in SECTION.finditer(scenario)}
    return "".join({**old, **changed}.values())


def answer(command: str) -> str:
    """What *command* prints: on standard output, and on standard error where it fails."""
    program, *words = shlex.split(command)
    if program not in ("fedsim", "python"):
        return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout
    printed, said, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        if program == "fedsim":
            status = cli.main(words)
        else:
            runpy.run_path(words[0], run_name="__main__")
    return printed.getvalue() + (said.getvalue() if status else "")
