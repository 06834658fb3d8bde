"""The tables of scenarios/README.md, from the scenarios and from what was measured of them, scenarios/measured.csv."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pandas as pd

from fedsim.metrics.intervals import half_width
from fedsim.radio.settings import RadioSettings
from fedsim.scenario.load import load
from fedsim.scenario.schema import Scenario
from fedsim.topology.graph import NodeKind
from fedsim.units import si
from fedsim.viz.human import duration, number, size, with_half_width
from writers.markdown import ROOT, relative, table

FOLDER = ROOT / "scenarios"
PAGE = FOLDER / "README.md"
CASES = ROOT / "docs/industrial_cases.md"
"""A page that has numbers of some of them, too (docs/writers/cases.py)."""
MEASURED = FOLDER / "measured.csv"
COLUMNS = ["scenario", "protocol", "seed", "metric", "value", "sim_time_s", "transfer_bytes", "host_s", "settings"]
"""Of measured.csv: a row for each metric, and one without a metric where nothing is trained."""
NOT_PART = ("name", "description", "seeds")
"""Keys that leave each seed's numbers as they are."""
TITLES = ["scenario", "data", "network", "protocol", "result", "time", "traffic", "minutes"]
SAME = "&nbsp;"
"""A space at which no line is broken: what stands beside each other in two cells stays there."""
REAL_TIME = re.compile(r"^# Real time: ([^;\n]+)", re.MULTILINE)
"""How the header of a scenario of scenarios/paper says how long it takes."""


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.yaml"


@cache
def scenario_of(name: str) -> Scenario:
    return load(path_of(name))


def needs_files(scenario: Scenario) -> bool:
    """Whether its data come from files that FEDSIM_DATA leads to."""
    return getattr(scenario.data, "origin", None) is not None


def settings_of(scenario: Scenario) -> str:
    """What tells two versions of a scenario apart whose numbers may differ: of all that was written, but comments."""
    written = scenario.written.word(())
    assert isinstance(written, dict)
    kept = {key: value for key, value in written.items() if key not in NOT_PART}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:8]


# -- what was measured ------------------------------------------------------------------------------------------------


def measured() -> pd.DataFrame:
    """The rows of measured.csv; none where there is no such file yet."""
    if not MEASURED.exists():
        return pd.DataFrame(columns=COLUMNS)
    return pd.read_csv(
        MEASURED, dtype={"settings": str, "metric": str}, keep_default_na=False, na_values={"value": [""]}
    )


def minutes(rows: pd.DataFrame, scenario: Scenario) -> float:
    """How long the scenario takes as it stands, with all of its seeds; *rows* are those measured of it."""
    return len(scenario.seeds) * float(rows.groupby("seed")["host_s"].first().mean()) / 60


# -- the tables -------------------------------------------------------------------------------------------------------


def all_of(folder: str) -> str:
    """The table of the scenarios that are ``shipped``, or of those in ``paper``."""
    return relative({"shipped": shipped, "paper": papers}[folder](), "scenarios/README.md")


def shipped() -> str:
    """With what they end with."""
    rows = measured()
    return table(TITLES, [line(name, rows[rows["scenario"] == name]) for name in names()])


def line(name: str, rows: pd.DataFrame) -> list[str]:
    """A scenario's line of the table; *rows* are those measured of it, and there may be none."""
    scenario = scenario_of(name)
    cells: dict[str, list[str]] = {title: [] for title in TITLES[3:7]}
    for protocol in scenario.protocols:
        mine = rows[rows["protocol"] == protocol.title]
        told = [protocol.title, ", ".join(results(mine)), *spent(mine)]
        for texts, text in zip(cells.values(), told, strict=True):
            texts.append(text)
    lines = map(below_each_other, cells.values())
    took = f"{max(minutes(rows, scenario), 0.1):.1f}" if len(rows) else "not measured"
    seeds = f"<br>({len(scenario.seeds)}{SAME}seeds)" if len(rows) and len(scenario.seeds) > 1 else ""
    about = f"[{name}](/scenarios/{name}.yaml)<br>{scenario.description}"
    return [about, data_text(scenario), network_text(name), *lines, took + seeds]


def below_each_other(texts: Iterable[str]) -> str:
    """A cell with a line for each protocol, as in the cells beside it; empty where none says anything."""
    lines = [text.replace(" ", SAME) for text in texts]
    return "<br>".join(lines) if any(lines) else ""


def results(rows: pd.DataFrame, *, widths: bool = False) -> Iterator[str]:
    """The mean over seeds of each metric of one protocol; the accuracy in per cent, without its name.

    With *widths*, half the width of its 95 % interval stands behind it.
    """
    for metric, values in rows[rows["metric"] != ""].groupby("metric", sort=False)["value"]:
        share = metric == "accuracy"
        values = 100 * values if share else values
        mean = float(values.mean(skipna=False))
        text = (
            with_half_width(mean, half_width(values.tolist())) if widths else f"{mean:.1f}" if share else number(mean)
        )
        yield f"{text} %" if share else f"{metric} {text}"


def spent(rows: pd.DataFrame) -> tuple[str, str]:
    """The means over seeds of one protocol's simulated time and traffic; empty where there are no rows."""
    once = rows.drop_duplicates("seed")
    return (duration(once["sim_time_s"].mean()), size(once["transfer_bytes"].mean())) if len(rows) else ("", "")


def data_text(scenario: Scenario) -> str:
    data = scenario.data
    page = ROOT / f"docs/data/{data.name}.md"
    words = [f"[{data.name}](/{page.relative_to(ROOT)})" if page.exists() else f"{data.name}"]
    partition = getattr(data, "partition", None)
    words += [partition.name] if partition is not None and partition.name != "iid" else []
    words += ["stream"] if getattr(data, "stream", None) is not None else []
    words += ["needs files"] if needs_files(scenario) else []
    return ", ".join(words)


@cache
def network_text(name: str) -> str:
    """The radios and how many devices share them."""
    scenario = scenario_of(name)
    topology = scenario.topology.build()
    kinds = [kind for _, kind in topology.infrastructure.nodes(data="kind")]
    cells = kinds.count(NodeKind.BASE_STATION)
    radios = [scenario.network.cell.radio, *(cell.radio for cell in scenario.network.cells.values())]
    told = dict.fromkeys(map(radio_text, radios))
    where = "one cell" if cells == 1 else f"{cells:,} cells"
    return f"{', '.join(told)}<br>{len(topology.sensors):,}{SAME}devices in {where}"


def radio_text(radio: RadioSettings) -> str:
    profile, category = getattr(radio, "profile", None), getattr(radio, "category", None)
    if category or profile:
        bandwidth = getattr(radio, "bandwidth_hz", None)
        wide = f" {si(bandwidth, 'Hz').replace(' ', SAME)}" if bandwidth and not category else ""
        own = "" if profile or radio.name == "shannon" else f"{radio.name} "
        return f"`{own}{category or profile}`{wide}"
    up, down = (getattr(radio, key, None) for key in ("uplink_bps", "downlink_bps"))
    if up is None or down is None:
        megahertz = getattr(radio, "bandwidth_mhz", None)
        return f"`{radio.name}`{f' {megahertz:g}{SAME}MHz' if megahertz else ''}"
    rates = ["no limit" if rate == math.inf else si(rate, "bit/s").replace(" ", SAME) for rate in (up, down)]
    return rates[0] if up == down else f"{rates[0]} up, {rates[1]} down"


def papers() -> str:
    """Those at the papers' sizes, and their small ones, with the real time that their headers state."""
    rows = []
    for path in sorted((FOLDER / "paper").glob("*.yaml")):
        scenario = load(path)
        rows.append([f"[{path.stem}](/scenarios/paper/{path.name})", scenario.description, stated_time(path)])
    return table(["scenario", "what it is about", "real time"], rows)


def stated_time(path: Path) -> str:
    """How long a run of the scenario at *path* takes, as its header says; empty where that does not say it.

    It is a line of its own, ``# Real time: 24 minutes on one core``; what stands behind a semicolon is left out.
    """
    found = REAL_TIME.search(path.read_text(encoding="utf-8"))
    return found[1].strip() if found else ""
