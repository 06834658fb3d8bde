"""Installs fedsim into the environment of the Python that executes this, and says what that takes and what it took.

``python .ci/install.py`` brings what a user needs, with kernels; ``dev`` as an argument adds what `make test` needs,
``long`` what `make test-long`, `make site` and `make browser` need beyond it, ``lab`` what `make lab` needs. Versions
are those of constraints.txt.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import deque
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
PINNED = ["-c", str(ROOT / "constraints.txt")]
ADDED = {"": (47, 1_000), "dev": (79, 440), "long": (58, 590), "lab": (81, 200)}
"""How many packages each choice brings to Linux, and how many MB on the disk without torch: what a user needs, and what
comes on top of it; ``long`` comes on top of ``dev``."""
TORCH = "PyTorch takes 800 MB more as its build for CPUs, and several GB as its build for CUDA, which is pip's choice."
INTERRUPTED = 130
LARGE_MB = 10.0  # packages of which the name is shown on a pipe
SHOWN_WHEN_IT_FAILED = 25
FOUND = re.compile(r"^(?:Collecting |Processing (?:\S*/)?)(?P<name>\w[\w.]*(?:-[a-z][\w.]*)*)")
FETCHED = re.compile(r"^ +(?:Downloading|Using cached) (?:\S*/)?(?P<name>\w[\w.]*-[^-]+)\S* \((?P<size>[\d.]+) MB\)")


def main(extra: str = "") -> int:
    """Install the choice; returns pip's status."""
    venv, (packages, megabytes) = Path(sys.prefix).name, ADDED[extra]
    more = " more" if extra else ""
    print(f"Installing {packages}{more} packages into {venv}: about {megabytes:,} MB on the disk.")
    if not extra:
        torch = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
        print(f"{TORCH}\nA torch {torch and torch[1]} that {venv} has already is kept.", flush=True)
    package = f"{ROOT}[{extra or 'kernels'}]"
    status = install(["setuptools"]) or install(["--no-build-isolation", "-e", package])
    if not status:
        print(f"{venv} now has {len(list(metadata.distributions()))} packages, {size_mb():,.0f} MB on the disk.")
    return status


def install(words: list[str]) -> int:
    """Let pip install that, and show how far it is; returns its status."""
    words = [*PIP, *PINNED, *words]
    last: deque[str] = deque(maxlen=SHOWN_WHEN_IT_FAILED)
    found = 0
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as pip:
        for line in pip.stdout or ():
            last.append(line)
            if package := FOUND.match(line):
                found += 1
                show(f"package {found}: {package['name']}")
            elif package := FETCHED.match(line):
                if float(package["size"]) >= LARGE_MB:
                    tell(f"{package['name'].replace('-', ' ')}, {float(package['size']):.0f} MB")
            elif line.startswith("Installing collected packages: ") and "," in line:
                tell(f"unpacking {line.count(',') + 1} packages, which can take a minute or two")
    show("")
    if pip.returncode:
        print("pip could not install this:", *filter(None, map(str.rstrip, last)), sep="\n  ", file=sys.stderr)
    return pip.returncode


def tell(text: str) -> None:
    """A line that stays."""
    show("")
    print(f"  {text}", flush=True)


def show(text: str) -> None:
    """A line that the next one overwrites; nothing on a pipe."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text and '  '}{text}", end="", flush=True)


def size_mb() -> float:
    """What the environment takes on the disk."""
    return sum(path.lstat().st_size for path in Path(sys.prefix).rglob("*") if not path.is_dir()) / 1e6


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on.", file=sys.stderr)
        sys.exit(INTERRUPTED)
