"""What every command has in common: help, names that are nearly right, exit status."""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from scenario_texts import write_scenario

from fedsim import cli
from fedsim.cli import main

COMMANDS = (
    *("new", "run", "sweep", "retime", "advise", "compare", "explain", "plot", "report", "trace", "export"),
    *("draw", "describe", "validate", "schema", "list", "completion"),
)


def test_no_command_prints_help_and_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert all(re.search(rf"^    {command} +[A-Z]", printed.err, re.MULTILINE) for command in COMMANDS)


def test_help_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], *([command, "--help"] for command in COMMANDS)):
        assert main(words) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("usage: fedsim")
        assert "%%" not in printed


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fedsim {metadata.version('fedsim-industrial')}\n"


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["compare"], "arguments are required: RUN_DIR"),
        (["compare", "x", "--at", "rounds=3"], "'rounds=3' must be a column that can be a budget (round, sim_time_s, "),
        (["compare", "x", "--at", "rounds=3"], "above 0, as in transfer_bytes=4e9; did you mean 'round'?"),
        (["compare", "x", "--at", "round=-3"], "= and a finite number above 0, as in transfer_bytes=4e9\n"),
        (["compare", "x", "--at", "transfer_bytes"], "'transfer_bytes' must be a column that can be a budget"),
        (["compare", "x", "--at", "round=nan"], "'round=nan' must be a column that can be a budget"),
    ],
)
def test_what_the_parser_refuses_is_status_2_as_well(
    words: list[str], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert rule in capsys.readouterr().err


def test_every_option_is_explained_in_a_sentence() -> None:
    parser, commands = cli._parser()
    explained = [
        (command, action.dest, action.help or "")
        for command, of_command in [("fedsim", parser), *commands.items()]
        for action in of_command._actions
        if not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))
    ]
    assert len(explained) > 15
    assert [entry for entry in explained if not re.fullmatch(r"(?s)[A-Z].{10,}\.", entry[2])] == []


def test_commands_are_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    sentences = re.findall(r"^    (\w+) +([A-Z].*\.)$", capsys.readouterr().out, re.MULTILINE)
    assert tuple(command for command, _ in sentences) == COMMANDS


def test_a_reader_who_has_seen_enough_is_no_failure() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "fedsim", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_output_that_cannot_be_written_is_no_bug() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fedsim", "list", "topologies"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "fedsim: No space left on device\n")


def test_too_little_memory_is_no_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def too_much() -> None:
        raise MemoryError

    monkeypatch.setattr(cli.schema, "scenario_schema", too_much)
    assert main(["schema"]) == 1
    assert capsys.readouterr().err == "fedsim: there is not enough memory for this\n"


def test_letters_that_the_output_has_not_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_scenario(tmp_path).rename(tmp_path / "wärme\u202e.yaml")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["validate", str(path)]) == 0
    assert written.getvalue().decode("ascii").startswith(f"{tmp_path}/w\\xe4rme\\u202e.yaml is fine: ")
