"""Plants each fault in a copy of the tree, runs the tests that should see it, and says which did.

    python -m mutants [PART_OF_A_NAME ...] [--workers N]

from the folder ``tests``. The exit status is 1 if a fault is not seen, if a change makes tests break rather than fail,
or if a test fails without any fault. Tests that do not end within five minutes have seen the fault too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from mutants.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
COPIED = ("fedsim", "tests", "setup.cfg", "pyproject.toml")
PYTEST = (
    *(sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "mutants.quick"),
    "--hypothesis-profile=mutants",
)
LONGEST_S = 300.0
FAILED, PASSED = 1, 0
"""What pytest returns; anything else is no verdict on the fault."""


@dataclass(frozen=True)
class Verdict:
    """What came of one fault."""

    seen: bool
    word: str
    """In the table."""
    took_s: float


class Copy:
    """A copy of the tree, in which one fault at a time is planted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        self._environment = os.environ | {
            "CI": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",  # or a fault of the same length might not be compiled in
            "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "tests")]),
        }

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """The copy has the fault meanwhile."""
        path = self.folder / fault.path
        sound = path.read_text(encoding="utf-8")
        path.write_text(fault.planted_in(sound), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(sound, encoding="utf-8")

    def pytest(self, tests: Sequence[str], *options: str, longest_s: float | None = None) -> tuple[int | None, str]:
        """Exit status and output; no status when it took too long."""
        command = [*PYTEST, *options, *tests]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=longest_s
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout + done.stderr


def verdict(copy: Copy, fault: Fault) -> Verdict:
    """Plant it, and see who sees it."""
    began_s = time.perf_counter()
    with copy.planted(fault):
        status, output = copy.pytest(fault.tests, *([] if fault.by_each else ["-x"]), longest_s=LONGEST_S)
    took_s = time.perf_counter() - began_s
    failed = re.findall(r"^(?:FAILED|ERROR) \S*?([^/\s]+\.py\S*)", output, flags=re.MULTILINE)
    if status is None:
        return Verdict(not fault.by_each, "it never ends", took_s)
    if status == PASSED:
        return Verdict(False, "NOT SEEN", took_s)
    if status != FAILED or not failed:
        return Verdict(False, f"BROKEN: {output.strip().splitlines()[-1] if output.strip() else status}", took_s)
    if fault.by_each and (passed := re.search(r"(\d+) passed", output)):
        return Verdict(False, f"NOT SEEN by {passed[1]} of {len(failed) + int(passed[1])}", took_s)
    return Verdict(True, f"all {len(failed)}" if fault.by_each else failed[0], took_s)


def unsound(copies: Sequence[Copy], faults: Sequence[Fault]) -> str:
    """What the tests of all faults say of a tree without any; nothing when all of them pass."""
    named = {test for fault in faults for test in fault.tests}
    tests = sorted(test for test in named if "::" not in test or test.partition("::")[0] not in named)
    parts = [tests[number :: len(copies)] for number in range(len(copies))]
    with ThreadPoolExecutor(len(copies)) as pool:
        ends = list(pool.map(lambda copy, part: copy.pytest(part) if part else (PASSED, ""), copies, parts))
    return "\n".join(output for status, output in ends if status != PASSED)


def main() -> int:
    """Try the faults, print a line for each, and return the exit status."""
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="only faults whose names contain one of these")
    parser.add_argument("--workers", type=int, default=2, help="faults tried at the same time")
    arguments = parser.parse_args()
    chosen = [fault for fault in FAULTS if not arguments.names or any(part in fault.name for part in arguments.names)]
    began_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(max(1, arguments.workers))]
        if complaint := unsound(copies, chosen):
            sys.stdout.write(f"without any fault, tests fail:\n{complaint}\n")
            return 1
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            free.put(copy)

        def tried(fault: Fault) -> Verdict:
            copy = free.get()
            try:
                return verdict(copy, fault)
            finally:
                free.put(copy)

        seen = 0
        with ThreadPoolExecutor(len(copies)) as pool:
            for fault, found in zip(chosen, pool.map(tried, chosen), strict=True):
                seen += found.seen
                sys.stdout.write(f"{fault.name:62} {found.took_s:5.1f} s  {found.word}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{seen} of {len(chosen)} faults were seen, in {time.perf_counter() - began_s:.0f} s\n")
    return 0 if seen == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
