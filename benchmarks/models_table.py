"""The table of the models benchmark, and the same rows as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import os
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.models_work import CLIENTS, Work
from fedsim.files import write_atomically


@dataclass(frozen=True)
class Turn:
    """What one round took."""

    wall_s: float
    cpu_s: float
    """Of this process and of all that it has started; of this one alone where there is no /proc."""

    @staticmethod
    def begun() -> tuple[float, float]:
        """Two clocks, for `since`."""
        return time.perf_counter(), _cpu_s()

    @staticmethod
    def since(begun: tuple[float, float]) -> Turn:
        """What it has taken since then."""
        begin_s, begin_cpu_s = begun
        return Turn(time.perf_counter() - begin_s, _cpu_s() - begin_cpu_s)


def _cpu_s() -> float:
    children = [pid for listed in Path("/proc/self/task").glob("*/children") for pid in listed.read_text().split()]
    stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in children)
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in stats)  # of the user and of the system
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


@dataclass
class Row:
    """A model and a size of mini-batches: measured, or why not."""

    work: Work
    precision: str
    executor: str = ""
    layout: str = ""
    """Of the loop's convolutions."""
    turns: list[tuple[Turn, Turn]] = field(default_factory=list)
    """Of each measured round: fedsim's, and then the loop's."""
    fedsim_off: float | None = None
    """In bfloat16: how far the model after one round is from that in float32, as a share of the update in float32."""
    loop_off: float | None = None
    reason: str | None = None

    @property
    def name(self) -> str:
        return f"{self.work.model.label}, batch {self.work.batch}"

    @property
    def ratios(self) -> list[float]:
        """Of neighbours: above 1 fedsim is faster."""
        return [loop.wall_s / fedsim.wall_s for fedsim, loop in self.turns]

    def is_slower(self, than: float) -> bool:
        """Whether the median ratio is below *than*."""
        return bool(self.turns) and statistics.median(self.ratios) < than

    def facts(self) -> dict[str, Any]:
        """All that is known of it, under plain names."""
        model = self.work.model
        facts = {"model": model.label, "batch": self.work.batch, "precision": self.precision, "reason": self.reason}
        if not self.turns:
            return facts
        trained = CLIENTS * self.work.samples
        fedsim_s, loop_s = (statistics.median(turn[side].wall_s for turn in self.turns) for side in (0, 1))
        fedsim_cpu_s, loop_cpu_s = (sum(turn[side].cpu_s for turn in self.turns) for side in (0, 1))
        return facts | {
            "samples_per_client": self.work.samples,
            "executor": self.executor,
            "loop_layout": self.layout,
            "rounds": len(self.turns),
            "fedsim_s": fedsim_s,
            "loop_s": loop_s,
            "ratio": statistics.median(self.ratios),
            "least_ratio": min(self.ratios),
            "largest_ratio": max(self.ratios),
            "cpu_ratio": loop_cpu_s / fedsim_cpu_s,
            "fedsim_ms_per_sample": 1e3 * fedsim_s / trained,
            "loop_ms_per_sample": 1e3 * loop_s / trained,
            "fedsim_update_error": self.fedsim_off,
            "loop_update_error": self.loop_off,
        }


def table(rows: list[Row], slow: float) -> Table:
    """At most 120 columns wide; rows with a ratio below *slow* are marked."""
    off = any(row.fedsim_off is not None for row in rows)
    shown = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("model", "batch", "executor"):
        shown.add_column(heading, justify="right" if heading == "batch" else "left", no_wrap=True)
    headings = [
        "fedsim\ns",
        "loop\ns",
        "loop /\nfedsim",
        "",
        "least",
        "most",
        "CPU",
        "fedsim ms\na sample",
        "loop ms\na sample",
    ]
    for heading in headings + (["fedsim\noff %", "loop\noff %"] if off else []):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        cells = [row.work.model.label, str(row.work.batch), row.executor]
        shown.add_row(*cells, *(_numbers(row, slow, off) if row.turns else ["none"]))
    return shown


def _numbers(row: Row, slow: float, off: bool) -> list[str]:
    facts = row.facts()
    errors = [facts[key] for key in ("fedsim_update_error", "loop_update_error")] if off else []
    return [
        *(f"{facts[key]:.3f}" for key in ("fedsim_s", "loop_s")),
        f"{facts['ratio']:.2f}",
        "slower" if row.is_slower(slow) else "",
        *(f"{facts[key]:.2f}" for key in ("least_ratio", "largest_ratio", "cpu_ratio")),
        *(f"{facts[key]:.4f}" for key in ("fedsim_ms_per_sample", "loop_ms_per_sample")),
        *("-" if error is None else f"{100 * error:.2f}" for error in errors),
    ]


def write(folder: Path, rows: list[Row], machine: dict[str, Any]) -> None:
    """``models_float32.csv`` and ``.json``, or those of another precision; the JSON has each round's seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"models_{machine['precision']}"
    facts = [row.facts() for row in rows]
    seconds = ({"turns_s": [[turn.wall_s for turn in pair] for pair in row.turns]} for row in rows)
    whole = [fact | each for fact, each in zip(facts, seconds, strict=True)]
    write_atomically(
        folder / f"{stem}.json", (json.dumps({"machine": machine, "rows": whole}, indent=1) + "\n").encode()
    )
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(name for fact in facts for name in fact)))
    writer.writeheader()
    writer.writerows(facts)
    write_atomically(folder / f"{stem}.csv", text.getvalue().encode())
