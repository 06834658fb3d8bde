"""A shell that has read `fedsim completion` completes commands, options, choices and files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fedsim.cli import main

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "fedsim.bash"
    with pytest.MonkeyPatch.context() as patch, path.open("w", encoding="utf-8") as file:
        patch.setattr("sys.stdout", file)
        assert main(["completion", "bash"]) == 0
    return path


@bash
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (
            "",
            {
                *("new", "run", "compare", "explain", "plot", "trace"),
                *("draw", "describe", "validate", "schema", "list", "completion"),
            },
        ),
        ("comp", {"compare", "completion"}),
        ("run --no", {"--no-training"}),
        ("run --torch-device ", {"cpu", "cuda"}),
        ("plot --format ", {"png", "svg", "pdf"}),
        ("run pl", {"plant.yaml"}),
        ("completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_offers_what_can_follow(line: str, offered: set[str], script: Path, tmp_path: Path) -> None:
    (tmp_path / "plant.yaml").touch()
    words = ["fedsim", *line.split(" ")]
    quoted = " ".join(f"'{word}'" for word in words)
    code = (
        f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='fedsim {line}'; "
        f"COMP_POINT=${{#COMP_LINE}}; _shtab_fedsim fedsim '{words[-1]}' '{words[-2]}'; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert offered <= set(done.stdout.split()), done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "no-training" in script and "validate" in script
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True)  # it can be read


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "cmd"]) == 2
    assert "invalid choice: 'cmd' (choose from" in capsys.readouterr().err
