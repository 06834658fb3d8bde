"""The tables and sentences of docs/industrial_cases.md, from the scenarios and from scenarios/measured.csv.

A sentence stands in the comment of its block, with places for numbers::

    <!-- generated: ended FedAvg ends at {wear/fedavg/accuracy}, after {wear/fedavg/time}. -->

A place names a scenario, a protocol's title, and ``time``, ``traffic`` or a metric of measured.csv: a mean over the
seeds 1 to 3. With ``/range`` behind a metric or a time it is what the seeds have, from the lowest to the highest.
"""

from __future__ import annotations

import re
import textwrap

import pandas as pd

from fedsim.scenario.schema import Scenario
from fedsim.viz.human import duration, number
from writers import scenarios
from writers.markdown import COLUMNS, ROOT, relative, table

PAGE = str(scenarios.CASES.relative_to(ROOT))
INDUSTRIAL = ("bearings_night_shift", "cwru", "engines", "cameras", "wear")
"""Cases of a plant with data like the plant's own, or nearly."""
RELATED = ("night_shift_nb_iot", "far_sensors_lte_m", "agv_with_faults", "plant_mixed", "femnist_368", "glyphs_368")
"""Cases of which the network, the devices or the size is a plant's, and the data stand in for its own."""
RADIOS = ("nbiot_vibration", "ltem_cameras", "private_5g_agv", "mixed_park")
"""Cases of which the radio is the question."""
TITLES = ["case", "data and network", "protocol", "learning rate, batch", "result", "time", "traffic"]
PLACE = re.compile(r"\{(?P<scenario>\w+)/(?P<protocol>[^{}/]+)/(?P<what>[^{}/]+)(?P<range>/range)?\}")
SHARES = ("accuracy", "macro_f1", "recall", "false_alarms", "missed_faults")
NOT_YET = "Its numbers are not measured yet."


def table_of(kind: str) -> str:
    """The table of the cases that are ``industrial``, of ``related`` ones, or of those about ``radios``."""
    names = {"industrial": INDUSTRIAL, "related": RELATED, "radios": RADIOS}[kind]
    rows = scenarios.measured()
    lines = [line(name, rows[rows["scenario"] == name]) for name in names]
    return relative(table(TITLES, lines), PAGE)


def line(name: str, rows: pd.DataFrame) -> list[str]:
    """A case's line, with a line in its cells for each protocol; *rows* are those measured, and there may be none."""
    scenario = scenarios.scenario_of(name)
    cells: list[list[str]] = []
    for protocol in scenario.protocols:
        mine = rows[rows["protocol"] == protocol.title]
        first = next(scenarios.results(mine, widths=True), "")
        cells.append([protocol.title, settings_text(scenario, protocol.title), first, *scenarios.spent(mine)])
    if rows.empty:
        cells[0][2] = "not measured yet"
    about = f"[{name}](/scenarios/{name}.yaml)<br>{question(name)}"
    network = f"{scenarios.data_text(scenario)}<br>{scenarios.network_text(name)}"
    return [about, network, *map(scenarios.below_each_other, zip(*cells, strict=True))]


def question(name: str) -> str:
    """What a scenario asks: the last question in the first paragraph of its header, or its description."""
    header = scenarios.path_of(name).read_text(encoding="utf-8").partition("\n#\n")[0]
    text = " ".join(written.removeprefix("#").strip() for written in header.splitlines())
    asked = [sentence for sentence in re.split(r"(?<=[.?]) (?=[A-Z0-9])", text) if sentence.endswith("?")]
    return asked[-1] if asked else scenarios.scenario_of(name).description


def settings_text(scenario: Scenario, title: str) -> str:
    """How a protocol's clients train: ``0.1, 8``, and its momentum where there is one."""
    protocol = next(one for one in scenario.protocols if one.title == title)
    training = protocol.training or scenario.training
    momentum = f", momentum {training.momentum:g}" if training.momentum else ""
    return f"{training.learning_rate:g}, {training.batch_size}{momentum}"


# -- sentences --------------------------------------------------------------------------------------------------------


def ended(text: str) -> str:
    """A paragraph with the numbers in their places; `NOT_YET` where a scenario has none."""
    rows = scenarios.measured()
    for match in PLACE.finditer(text):
        assert match["scenario"] in scenarios.names(), f"there is no scenario {match['scenario']}"
        titles = [protocol.title for protocol in scenarios.scenario_of(match["scenario"]).protocols]
        assert match["protocol"] in titles, f"{match[0]}: there is no such protocol, only {', '.join(titles)}"
        if match["scenario"] not in set(rows["scenario"]):
            return f"{NOT_YET}\n"
    filled = PLACE.sub(lambda match: value(rows, match), " ".join(text.split()))
    assert "{" not in filled, f"no place is written like this: {filled}"
    return textwrap.fill(filled, COLUMNS, break_long_words=False, break_on_hyphens=False) + "\n"


def value(rows: pd.DataFrame, place: re.Match[str]) -> str:
    """What stands in a *place*, of the measured *rows*."""
    mine = rows[(rows["scenario"] == place["scenario"]) & (rows["protocol"] == place["protocol"])]
    assert len(mine), f"nothing was measured of {place[0]}"
    time, traffic = scenarios.spent(mine)
    if place["what"] == "time" and place["range"]:
        shortest, longest = duration(mine["sim_time_s"].min()), duration(mine["sim_time_s"].max())
        unit = f" {longest.split()[-1]}"
        return longest if shortest == longest else f"{shortest.removesuffix(unit)} to {longest}"
    if place["what"] in ("time", "traffic"):
        assert not place["range"], f"{place[0]}: traffic has no range"
        return time if place["what"] == "time" else traffic
    values = mine.loc[mine["metric"] == place["what"], "value"]
    assert len(values), f"{place[0]}: no such metric was measured, only {', '.join(mine['metric'].unique())}"
    share = place["what"].startswith(SHARES)
    if place["range"]:
        low, high = (f"{100 * one:.0f}" if share else number(one) for one in (values.min(), values.max()))
        return f"{low}{'' if low == high else f' to {high}'}{' %' if share else ''}"
    mean = float(values.mean(skipna=False))
    return f"{100 * mean:.1f} %" if share else number(mean)
