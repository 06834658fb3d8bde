"""Virtual environments of the peers, each with exact versions: ``python -m benchmarks.peers.install [NAME ...]``.

An environment is made once, and again whenever its requirements or the interpreter change. Left out: building from
source where there is no wheel; such a peer is then not installed, with pip's own reason.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PEERS = ("flower", "pfl", "fedlab")
ALONE = {"fedlab": "fedlab==1.3.0"}
"""Without what they ask for: FedLab asks for a torchvision, which has to fit the torch and is not used."""
STAMP = "installed"


class NotInstalled(Exception):
    """Why a peer's environment cannot be made."""


def interpreter(name: str) -> Path:
    """The Python of a peer's environment, which need not be there yet."""
    return HERE / ".envs" / name / "bin" / "python"


def install(name: str) -> None:
    """Make the environment of *name*, if that has not been done. Raises `NotInstalled` with the reason."""
    requirements = HERE / "requirements" / f"{name}.txt"
    alone = [ALONE[name]] if name in ALONE else []
    wanted = hashlib.sha256(f"{sys.version} {requirements.read_text()} {alone}".encode()).hexdigest()
    python = interpreter(name)
    stamp = python.parents[1] / STAMP
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    sys.stderr.write(f"Installing {name} into {python.parents[1]}; this takes a minute or two.\n")
    _call([sys.executable, "-m", "venv", "--clear", str(python.parents[1])])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _call([*pip, "--requirement", str(requirements)])
    if alone:
        _call([*pip, "--no-deps", *alone])
    stamp.write_text(wanted)


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")]
        raise NotInstalled((errors or lines or [f"{command[0]} failed"])[0].removeprefix("ERROR: "))


if __name__ == "__main__":
    for peer in sys.argv[1:] or PEERS:
        try:
            install(peer)
        except NotInstalled as reason:
            sys.exit(f"{peer} cannot be installed: {reason}")
