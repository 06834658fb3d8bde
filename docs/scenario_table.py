"""Runs the shipped scenarios on seeds 1 to 3, and writes what they end with: scenarios/measured.csv and pages of it.

    python docs/scenario_table.py [NAME ...]    runs all of them, or those named, and keeps the other rows
    python docs/scenario_table.py --table       writes the pages from the rows and the scenarios, and runs nothing

The pages are scenarios/README.md and docs/industrial_cases.md.

Each scenario is run as a user would, by a ``fedsim run`` of its own for each seed, with a store of its own. (With one
store for all of them, some would find what others had trained, and the minutes would be too few.) One with
``learn: false`` is run once. The rows are written after each scenario. Exit status 1: something is not as the
scenario's header says, or a run failed. How headers say it: CONTRIBUTING.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import generate
import pandas as pd
from writers import scenarios
from writers.expected import SEEDS, Row, column, expected, misses

import fedsim
from fedsim.errors import UserError, nearest


def fedsim_run(words: Sequence[str]) -> tuple[int, str]:
    """Give the command, in a process of its own; returns its exit status and what it said as errors."""
    command = [sys.executable, "-m", "fedsim", "run", *words]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


def measure(name: str, seed: int) -> list[dict[str, Any]]:
    """The rows of one scenario on one seed: it is run, into a folder that is gone afterwards.

    Raises `UserError` with the run's own message where it fails.
    """
    path, scenario = scenarios.path_of(name), scenarios.scenario_of(name)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / name
        began_s = time.perf_counter()
        status, errors = fedsim_run([str(path), "--out", str(out), "--set", f"seeds=[{seed}]"])
        took_s = time.perf_counter() - began_s
        if status:
            raise UserError(f"{name} on seed {seed}: {(errors.strip().splitlines() or [f'exit status {status}'])[-1]}")
        summary = fedsim.load_results(out).summary
    summary = summary[summary["accounting"] == "event"]
    said, usual = expected(path), usual_metrics(summary)
    facts = {"scenario": name, "seed": seed, "host_s": round(took_s), "settings": scenarios.settings_of(scenario)}
    rows = []
    for run in summary.to_dict("records"):
        facts |= {"protocol": run["protocol"], "sim_time_s": float(f"{run['sim_time_s']:.7g}")}
        facts |= {"transfer_bytes": round(run["transfer_bytes"])}
        metrics = said[run["protocol"]].ranges if run["protocol"] in said else usual
        rows += [{**facts, "metric": metric, "value": round(run[column(metric, run)], 6)} for metric in metrics]
        rows += [] if metrics else [{**facts, "metric": "", "value": ""}]
    return rows


def usual_metrics(summary: pd.DataFrame) -> list[str]:
    """What to measure of a scenario that does not say it: the accuracy, or the error of numbers; nothing untrained."""
    known = summary.columns[summary.notna().any()]
    return [name for name, of_summary in (("accuracy", "final_accuracy"), ("rmse", "rmse")) if of_summary in known][:1]


def outside(rows: pd.DataFrame, name: str, said: dict[str, Row]) -> list[str]:
    """Where the measured *rows* are not as the header of the scenario called *name* has *said*."""
    found = []
    for (protocol, seed), mine in rows[rows["scenario"] == name].groupby(["protocol", "seed"], sort=False):
        if protocol in said:
            metrics = dict(zip(mine["metric"], mine["value"], strict=True))
            run = mine.iloc[0]
            spent = {"sim_time_s": run["sim_time_s"], "transfer_bytes": run["transfer_bytes"]}
            found += [
                f"{name}, {protocol}, seed {seed}: {problem}" for problem in misses(said[protocol], metrics, **spent)
            ]
    return found


def merged(old: pd.DataFrame, new: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The *old* rows with the *new* ones in the place of those of the same scenarios; in the order of scenarios.

    Those of scenarios that are gone are left out.
    """
    fresh = pd.DataFrame(new, columns=scenarios.COLUMNS)
    kept = old[~old["scenario"].isin(fresh["scenario"]) & old["scenario"].isin(scenarios.names())]
    rows = pd.concat([kept.astype(object), fresh.astype(object)])
    return rows.sort_values("scenario", kind="stable", ignore_index=True)


def write_rows(rows: pd.DataFrame) -> None:
    text = rows[scenarios.COLUMNS].to_csv(index=False, lineterminator="\n")
    scenarios.MEASURED.write_text(text, encoding="utf-8", newline="")


def write_pages() -> None:
    for path in (scenarios.PAGE, scenarios.CASES):
        page = path.read_text(encoding="utf-8")
        path.write_text(generate.generated(page), encoding="utf-8", newline="")


def run_all(names: Sequence[str]) -> int:
    """Run the scenarios called *names*, write their rows and the page, and return the exit status."""
    problems = []
    for position, name in enumerate(names, 1):
        print(f"[{position}/{len(names)}] {name}", end="", flush=True)
        rows = []
        try:
            seeds = SEEDS if scenarios.scenario_of(name).learn else SEEDS[:1]
            said = expected(scenarios.path_of(name))
            for seed in seeds:
                rows += measure(name, seed)
                print(f"  seed {seed}: {rows[-1]['host_s']} s", end="", flush=True)
        except UserError as error:
            problems.append(str(error))
            print("  failed; its rows stay as they were", flush=True)
            continue
        print(flush=True)
        write_rows(merged(scenarios.measured(), rows))
        problems += outside(scenarios.measured(), name, said)
    write_pages()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def main(words: Sequence[str] | None = None) -> int:
    """What the command does; returns its exit status."""
    parser = argparse.ArgumentParser(prog="scenario_table.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a scenario of scenarios/, without its .yaml; all of them"
    )
    parser.add_argument("--table", action="store_true", help="write the pages only, and run nothing")
    asked = parser.parse_args(words)
    known = scenarios.names()
    try:
        for name in asked.names:
            if name not in known:
                raise UserError(f"there is no scenarios/{name}.yaml{nearest(name, known)}")
        if asked.table and asked.names:
            raise UserError("--table runs nothing: leave the names out")
        if asked.table:
            write_pages()
            return 0
        return run_all(asked.names or runnable(known))
    except UserError as error:
        print(f"scenario_table.py: {error}", file=sys.stderr)
        return 2


def runnable(names: Sequence[str]) -> list[str]:
    """Those that can be run here; it says which others there are."""
    if os.environ.get("FEDSIM_DATA"):
        return list(names)
    there = [name for name in names if not scenarios.needs_files(scenarios.scenario_of(name))]
    for name in names:
        if name not in there:
            print(f"{name} is left out, and its rows stay: it needs files, and FEDSIM_DATA names no folder")
    return there


if __name__ == "__main__":
    sys.exit(main())
