"""A command that is printed is the same command when it is pasted into a shell, whatever its words are."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from fedsim.experiment.shell import command_line

WORDS = {
    "plain": b"runs/plant",
    "blanks": b"my plant.yaml",
    "quotes": b'it\'s "fine"',
    "a variable": b"$HOME `ls` !!",
    "a line break": b"two\nlines",
    "a terminal escape": b"\x1b[2J",
    "all of it": b"\x07'\\\"\n$x\x7f\xc2\x85",
    "from right to left": "\u202ea1".encode(),
    "no UTF-8": b"\xff\xfe",
    "nothing": b"",
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_a_shell_reads_the_words_that_were_written(word: bytes) -> None:
    line = command_line(["printf", "%s|%s", os.fsdecode(word), "end"])
    assert line.isprintable()
    assert subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, check=True).stdout == word + b"|end"
