"""The table of the training benchmark: a section for each model and batch size, and the same rows as CSV and JSON."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.peers.work import COHORT, SAMPLES, flops_per_round
from benchmarks.training_process import Measured

MEGABYTE = 1e6
SAME = 0.03
"""After the first round, models that did the same work differ by less than this share of their update: by rounding
errors, and by the rectifiers and maxima that these make choose differently. It grows from round to round."""


@dataclass
class Row:
    """One contestant on one model and batch size: measured, or why not."""

    name: str
    model: str
    batch: int
    measured: Measured | None = None
    reason: str | None = None
    off: float | None = None
    """Distance of its model from the plain loop's, as a share of the plain loop's update, after the first round."""

    def facts(self, peak_gflops: float, base: Measured | None) -> dict[str, Any]:
        """All that is known of it, under plain names."""
        facts: dict[str, Any] = {"name": self.name, "model": self.model, "batch": self.batch, "reason": self.reason}
        if (done := self.measured) is None:
            return facts
        return facts | {
            "rounds": len(done.seconds),
            "seconds_per_round": done.round_s,
            "fastest_s": min(done.seconds),
            "slowest_s": max(done.seconds),
            "rounds_per_second": 1 / done.round_s,
            "samples_per_second": COHORT * SAMPLES / done.round_s,
            "percent_of_peak": 100 * flops_per_round(self.model) / done.round_s / (peak_gflops * 1e9),
            "times_fedsim": base and done.round_s / base.round_s,
            "process_bytes": done.own_bytes,
            "largest_child_bytes": done.child_bytes,
            "all_processes_bytes": done.together_bytes,
            "start_s": done.start_s,
            "test_loss": done.loss,
            "update_off_percent": None if self.off is None else 100 * self.off,
            "versions": done.versions,
        }


def table(rows: list[Row], peak_gflops: float, default: str) -> Table:
    """At most 120 columns wide; ratios are those to the row called *default* of the same section."""
    shown = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("", min_width=21)
    for heading in (
        "s per\nround",
        "rounds\nper s",
        "samples\nper s",
        "% of\npeak",
        "x\nfedsim",
        "process\nMB",
        "child\nMB",
        "all\nMB",
        "start\ns",
        "test\nloss",
        "update\noff %",
    ):
        shown.add_column(heading, justify="right", no_wrap=True)
    sections = dict.fromkeys((row.model, row.batch) for row in rows)
    for model, batch in sections:
        members = [row for row in rows if (row.model, row.batch) == (model, batch)]
        base = next((row.measured for row in members if row.name == default), None)
        shown.add_row(f"[bold]{model}, batch {batch}")
        for row in members:
            shown.add_row(*_cells(row, peak_gflops, base))
        shown.add_row()
    return shown


def reasons(rows: list[Row]) -> list[str]:
    """A line for each row without a number."""
    return [f"{row.name} ({row.model}, batch {row.batch}): {row.reason}" for row in rows if row.reason]


def _cells(row: Row, peak_gflops: float, base: Measured | None) -> list[str]:
    facts = row.facts(peak_gflops, base)
    if row.measured is None:
        return [f"  {row.name}", "none"]
    off = facts["update_off_percent"]
    return [
        f"  {row.name}",
        f"{facts['seconds_per_round']:.3f}",
        f"{facts['rounds_per_second']:.2f}",
        f"{facts['samples_per_second']:,.0f}",
        f"{facts['percent_of_peak']:.1f}",
        "-" if base is None else f"{facts['times_fedsim']:.2f}",
        *(_megabytes(facts[key]) for key in ("process_bytes", "largest_child_bytes", "all_processes_bytes")),
        f"{facts['start_s']:.1f}",
        f"{facts['test_loss']:.4f}",
        "-" if off is None else f"{off:.2f}" + (" !" if off > 100 * SAME else ""),
    ]


def _megabytes(number: int | None) -> str:
    return "-" if number is None else f"{number / MEGABYTE:,.0f}"


def write(folder: Path, rows: list[Row], default: str, sgemm_gflops: dict[str, float], machine: dict[str, Any]) -> None:
    """``training.csv`` and ``training.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    peak = max(sgemm_gflops.values())
    bases = {(row.model, row.batch): row.measured for row in rows if row.name == default}
    facts = [row.facts(peak, bases.get((row.model, row.batch))) for row in rows]
    seconds = [list(row.measured.seconds) if row.measured else [] for row in rows]
    whole = [fact | {"seconds": each} for fact, each in zip(facts, seconds, strict=True)]
    content = {"machine": machine, "sgemm_gflops": sgemm_gflops, "rows": whole}
    (folder / "training.json").write_text(json.dumps(content, indent=1) + "\n")
    names = list(dict.fromkeys(name for fact in facts for name in fact if name != "versions"))
    with (folder / "training.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(facts)
