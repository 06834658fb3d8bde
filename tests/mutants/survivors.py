"""Runs mutmut on the modules that make numbers true, and keeps a verdict beside each mutant that no test sees.

    python -m mutants.survivors [MODULE ...] [--workers N]

from the root, with ``tests`` on Python's path. What was tried already is not tried again, unless its function has
changed or it survived and has no verdict yet. The folder ``mutants`` holds that, and which tests reach which function;
it may be deleted. The list in ``survivors.csv`` is brought up to date: mutants that are seen now leave it, new
survivors join it without a verdict. The exit status is 1 when a survivor has no verdict, or when not all were tried.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mutmut import __main__ as mutmut
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths, walk_mutatable_files
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

from mutants import operators

SURVIVORS = Path("tests/mutants/survivors.csv")
STATISTICS = operators.FOLDER / "mutmut-stats.json"
"""Which tests reach which function, and how long they take."""
BOUND_S = 20.0
"""How long the tests of one mutant take together, at most: a survivor costs that, and laws reach nearly everything."""
FEWEST = 3
"""Tests that are run however long they take."""
UNTRIED = ("not checked", "check was interrupted by user")
SEEN = ("killed", "timeout", "segfault")


class Place(NamedTuple):
    """What a mutant changes, wherever its line is."""

    module: str
    function: str
    text: str
    """The lines that are changed, without what is before and after them."""
    instead: str


class Verdict(NamedTuple):
    """What somebody has found about a survivor."""

    verdict: str = ""
    """``equivalent``, ``accepted``, or nothing yet."""
    why: str = ""


def beginnings(only: list[str]) -> tuple[str, ...]:
    """What all names in those modules and packages begin with."""
    return tuple(f"{module}." for module in only)


def tried(only: list[str]) -> Iterator[tuple[str, Path, str]]:
    """Name, file and state of each mutant in those modules and packages."""
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            if name.startswith(beginnings(only)):
                yield name, path, status_by_exit_code[code]


def place(name: str, path: Path) -> Place:
    """Where that mutant is."""
    function, of_class = orig_function_and_class_names_from_key(name)
    lines = get_diff_for_mutant(name, path=path).splitlines()[2:]
    text, instead = (" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    return Place(module, f"{of_class}.{function}" if of_class else function, text, instead)


def read() -> dict[Place, Verdict]:
    """The list."""
    if not SURVIVORS.exists():
        return {}
    with SURVIVORS.open(encoding="utf-8", newline="") as file:
        return {Place(*row[:4]): Verdict(*row[4:]) for row in list(csv.reader(file))[1:]}


def write(verdicts: dict[Place, Verdict]) -> None:
    """Write the list, in the order of the places."""
    with SURVIVORS.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*Place._fields, *Verdict._fields])
        rows.writerows([*at, *verdicts[at]] for at in sorted(verdicts))


def within_bound(function: str, reaching: set[str], seconds: dict[str, float]) -> list[str]:
    """The tests that are run on mutants of the function, file by file, those of its package's own folder first.

    Those are chosen first that reach it, from the own folder and then from others, from the fastest on. Then others of
    their files: what a file computes once, in a fixture or a cache, is reached by one test, and seen by others.
    """
    own = f"tests/{function.split('.')[1]}/"
    files = {file_of(test) for test in reaching}
    beside = [test for test in seconds if file_of(test) in files]
    spent_s: dict[str, float] = dict.fromkeys(files, 0.0)
    chosen: list[str] = []
    for test in sorted(beside, key=lambda test: (test not in reaching, not test.startswith(own), seconds[test], test)):
        if len(chosen) < FEWEST or sum(spent_s.values()) + seconds[test] <= BOUND_S:
            chosen.append(test)
            spent_s[file_of(test)] += seconds[test]
    return sorted(chosen, key=lambda test: (not test.startswith(own), spent_s[file_of(test)], file_of(test)))


def file_of(test: str) -> str:
    """Where it is."""
    return test.partition("::")[0]


def bound_tests() -> None:
    """Let mutmut, once it knows which tests reach a function, run those within the bound, in their order."""
    program: Any = mutmut
    collect, tests_for = program.collect_or_load_stats, program.tests_for_mutant_names

    def collect_and_bound(*arguments: Any, **options: Any) -> None:
        collect(*arguments, **options)
        reach: dict[str, Any] = state().tests_by_mangled_function_name
        reach.update({name: within_bound(name, tests, state().duration_by_test) for name, tests in reach.items()})

    program.collect_or_load_stats = collect_and_bound
    program.tests_for_mutant_names = lambda names: sorted(tests_for(names))  # so that each file sets up once


def look_again_if_there_are_new_functions() -> None:
    """mutmut looks only at new tests again, and would find none for a new function."""
    if STATISTICS.exists():
        known = json.loads(STATISTICS.read_text("utf-8"))["function_hashes"]
        if not state().current_function_hashes.keys() <= known.keys():
            STATISTICS.unlink()


def run(only: list[str], workers: int, known: dict[Place, Verdict]) -> None:
    """Try each mutant that was not tried, and each survivor without a verdict."""
    operators.choose()
    bound_tests()
    set_mutant_under_test("mutant_generation")
    shutil.rmtree(operators.FOLDER / "tests", ignore_errors=True)  # a test that was deleted is not run
    with mutmut.CatchOutput(spinner_title="Generating mutants"):
        copy_src_dir()
        copy_also_copy_files()
        setup_source_paths()
        mutmut.create_mutants(workers)
    look_again_if_there_are_new_functions()
    waiting = [
        name
        for name, path, state in tried(only)
        if state in UNTRIED or (state not in SEEN and not known.get(place(name, path), Verdict()).verdict)
    ]
    if waiting:
        mutmut._run(waiting, workers)


def main() -> int:
    """Run mutmut, bring the list up to date, say how it went, and return the exit status."""
    parser = argparse.ArgumentParser(prog="mutants.survivors", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("only", nargs="*", default=["fedsim"], help="modules or packages, for example fedsim.grouping")
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at the same time")
    arguments = parser.parse_args()
    run(arguments.only, max(1, arguments.workers), read())
    known = read()  # somebody may have given verdicts meanwhile
    of_these = beginnings(arguments.only)
    found = [(place(name, path), state) for name, path, state in tried(arguments.only)]
    untried = sum(state in UNTRIED for _, state in found)
    listed = {at: verdict for at, verdict in known.items() if not f"{at.module}.".startswith(of_these)}
    survivors = {at: known.get(at, Verdict()) for at, state in found if state not in (*SEEN, *UNTRIED)}
    listed |= survivors | {at: known[at] for at, state in found if state in UNTRIED and at in known}
    write(listed)
    unjudged = sum(not verdict.verdict for verdict in survivors.values())
    said = f"{len(found)} mutants, {len(survivors)} survivors, {unjudged} without a verdict, {untried} not tried"
    sys.stdout.write(f"{' '.join(arguments.only)}: {said}; see {SURVIVORS}\n")
    return int(unjudged > 0 or untried > 0 or not found)


if __name__ == "__main__":
    sys.exit(main())
