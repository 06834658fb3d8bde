"""Draws docs/images/fedgs_crossing.png, FedGS's Proposition 4 as simulated, and writes docs/claims/fedgs_crossing.csv.

``python docs/pictures/fedgs_crossing.py``; it takes a few minutes. The network is that of
scenarios/paper/fedgs_times.yaml.

(Li et al., *Data heterogeneity-robust federated learning via group client selection in industrial IoT*, IEEE Internet
of Things Journal 2022, section VI-B.) A round of FedGS with T iterations is no longer than one of FedAvg with as many
local updates, up to a T*; Proposition 4 says that it is (B_e / B_c) M (L - 1) / L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, ScalarFormatter

from fedsim.experiment.simulate import simulate
from fedsim.learning.learner import NoLearner
from fedsim.metrics.cost_models.fedgs import TwoTiers
from fedsim.models.fedgs_cnn import FedgsCnn
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.load import load
from fedsim.viz.save import save_figure
from fedsim.viz.style import COLOURS, GREY, RC

DOCS = Path(__file__).resolve().parents[1]
SCENARIO = DOCS.parent / "scenarios/paper/fedgs_times.yaml"
RATIOS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""B_e / B_c; of a 5G edge, the paper says, 10 to 100."""
DRAWN_RATIO = 10.0
DRAWN_ITERATIONS = (1, 20, 40, 60, 80, 100, 120)
BATCH = 32
CLOUD_HZ = 10e6
FAIR: dict[str, Any] = {}
SERIAL = {f"network.{where}.discipline": "{name: serial}" for where in ("cell", "link")}
FREE = {"network.cell.radio": "{name: fixed, uplink_bps: .inf, downlink_bps: .inf}"}


class Setting(NamedTuple):
    """What the scenario has in place of its own keys, for a round of FedAvg and for one of FedGS."""

    fedavg: dict[str, Any]
    fedgs: dict[str, Any]


SETTINGS = {
    "FedAvg's air is free": Setting(FREE, FAIR),
    "both cross the air, fair": Setting(FAIR, FAIR),
    "both cross the air, serial": Setting(SERIAL, SERIAL),
}
"""The paper's assumption, and two of what a network may be like."""


def network(ratio: float) -> TwoTiers:
    """The scenario's, in the terms of the paper."""
    same_db = {"cloud_snr_db": 0.0, "station_snr_db": 0.0, "device_snr_db": 0.0}
    return TwoTiers(
        stations=10,
        devices=10,
        model_bytes=FedgsCnn().table(None, None).bytes(),
        edge_uplink_hz=ratio * CLOUD_HZ,
        edge_downlink_hz=ratio * CLOUD_HZ,
        cloud_uplink_hz=CLOUD_HZ,
        cloud_downlink_hz=CLOUD_HZ,
        **same_db,
    )


def round_s(protocol: str, iterations: int, ratio: float, changes: dict[str, Any]) -> float:
    """The simulated seconds of a round with so many steps of each device, all of them on its own mini-batches."""
    keys = {
        "learn": "false",
        "accounting": "[event]",
        "formula": "null",
        "network.cell.radio.bandwidth_hz": ratio * CLOUD_HZ,
        "data.samples_per_client": iterations * BATCH,
        "protocols": f"[{{{protocol}}}]",
    }
    scenario = load(SCENARIO, overrides=[f"{key}={value}" for key, value in (keys | changes).items()])
    (only,) = scenario.protocols
    world = build_world(scenario, only, gather_materials(scenario, 1), lambda *_: NoLearner())
    simulate(world, only, scenario.stop)
    return world.env.now


def fedavg_s(iterations: int, ratio: float, changes: dict[str, Any]) -> float:
    """A round of FedAvg: T updates of each device."""
    return round_s("name: fedavg, fraction: 1.0", iterations, ratio, changes)


def fedgs_s(iterations: int, ratio: float, changes: dict[str, Any]) -> float:
    """A round of FedGS, whose ten devices in each factory all take part."""
    return round_s(f"name: fedgs_random, devices: 10, iterations: {iterations}", iterations, ratio, changes)


def lead_s(iterations: int, ratio: float, setting: Setting) -> float:
    """How much longer FedAvg's round is."""
    return fedavg_s(iterations, ratio, setting.fedavg) - fedgs_s(iterations, ratio, setting.fedgs)


def crossing(ratio: float, setting: Setting) -> float:
    """T*, on the straight line between the last T at which FedGS's round is no longer than FedAvg's, and the next.

    Times are linear in T, so that two small T tell where these are. Whether they are there, is simulated.
    """
    one, two = (lead_s(iterations, ratio, setting) for iterations in (1, 2))
    last = math.floor(1 + one / (one - two) + 1e-9)
    ahead, behind = (lead_s(iterations, ratio, setting) for iterations in (last, last + 1))
    assert ahead > -1e-6 and behind < 0, f"the lead does not change its sign between {last} and {last + 1} iterations"
    return last + ahead / (ahead - behind)


def crossings(ratios: Sequence[float] = RATIOS) -> pd.DataFrame:
    """T* in each setting beside that of Proposition 4, and the difference of the first one in per cent."""
    rows = []
    for ratio in ratios:
        bound = network(ratio).most_iterations()
        found = {name: crossing(ratio, setting) for name, setting in SETTINGS.items()}
        free = next(iter(found.values()))
        rows.append(
            {
                "B_e / B_c": f"{ratio:g}",
                "Proposition 4": f"{bound:.2f}",
                **{name: f"{iterations:.2f}" for name, iterations in found.items()},
                "free air - Proposition 4, %": f"{abs(100 * (free / bound - 1)):.2f}",
            }
        )
    return pd.DataFrame(rows)


def rounds_over_iterations(axes: Axes) -> None:
    """Simulated rounds at one ratio, by T."""
    series = {
        "FedGS": (fedgs_s, FAIR, COLOURS[0], "-", "o"),
        "FedAvg, its air is free": (fedavg_s, FREE, COLOURS[1], "--", "s"),
        "FedAvg over the air, fair": (fedavg_s, FAIR, COLOURS[2], "-.", "^"),
    }
    for name, (seconds, changes, colour, line, marker) in series.items():
        hours = [seconds(iterations, DRAWN_RATIO, changes) / 3600 for iterations in DRAWN_ITERATIONS]
        axes.plot(DRAWN_ITERATIONS, hours, color=colour, linestyle=line, marker=marker, label=name)
    axes.axvline(network(DRAWN_RATIO).most_iterations(), color=GREY, linestyle=":", label="Proposition 4")
    axes.set(title=f"One round, $B_e / B_c$ = {DRAWN_RATIO:g}", ylim=(0, None))
    axes.set(xlabel="T, iterations in a round", ylabel="simulated time of a round (h)")


def crossings_over_ratios(table: pd.DataFrame, axes: Axes) -> None:
    """T* by the ratio of the bandwidths, and the region that the paper speaks of."""
    ratios = table["B_e / B_c"].astype(float)
    axes.axvspan(10, 100, color="#e9edf1", label="5G edge, as the paper says: 10 to 100")
    line = np.array([ratios.min(), ratios.max()])
    bounds = [network(ratio).most_iterations() for ratio in line]
    axes.plot(line, bounds, color=GREY, linestyle=":", linewidth=3, label="Proposition 4: $(B_e / B_c) M (L - 1) / L$")
    for name, colour, marker, size in zip(SETTINGS, COLOURS[1:4], "s^D", (11, 6, 6), strict=True):
        look: dict[str, Any] = {"marker": marker, "markersize": size, "linestyle": "none", "markeredgecolor": colour}
        inside = "none" if name == next(iter(SETTINGS)) else colour  # what lies on it is seen
        axes.plot(ratios, table[name].astype(float), markerfacecolor=inside, label=name, **look)
    axes.axhline(50, color=GREY, linewidth=0.8, linestyle="--", label="the paper's T = 50")
    axes.set(title="Up to which T FedGS's round is no longer", xscale="log", yscale="log")
    axes.set(xlabel="bandwidth of a cell over that to the cloud, $B_e / B_c$", ylabel="T*, iterations in a round")
    for axis, ticks in ((axes.xaxis, RATIOS), (axes.yaxis, (20, 50, 100, 200, 500, 1000))):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_locator(FixedLocator([]))


def picture(table: pd.DataFrame) -> Figure:
    """Rounds at one ratio, and all crossings."""
    figure = Figure(figsize=(12, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    rounds_over_iterations(left)
    crossings_over_ratios(table, right)
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    return figure


def main() -> None:
    table = crossings()
    path = DOCS / "claims/fedgs_crossing.csv"
    path.write_text(table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline="")
    print(table.to_string(index=False))
    print(save_figure(picture(table), DOCS / "images/fedgs_crossing.png"))


if __name__ == "__main__":
    with mpl.rc_context({**RC, "figure.dpi": 100}):
        main()
