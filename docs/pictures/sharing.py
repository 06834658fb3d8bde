"""Draws docs/images/sharing.png: ten NB-IoT devices, and what they share, under four kinds of air.

``python docs/pictures/sharing.py``
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fedsim.experiment.run import run
from fedsim.scenario.load import load
from fedsim.viz.save import save_figure
from fedsim.viz.style import GREY, RC

PICTURE = Path(__file__).resolve().parents[1] / "images/sharing.png"
DEVICES = 10
AIR: dict[str, dict[str, Any]] = {
    "fair: as NB-IoT is": {},
    "fair, carriers: 2": {"carriers": 2},
    "serial": {"discipline": {"name": "serial"}},
    "serial, duplex: shared (the accounting of HFedMS)": {"duplex": "shared", "discipline": {"name": "serial"}},
}
DOWN, UP = "#0072B2", "#D55E00"


def plant(air: dict[str, Any]) -> dict[str, Any]:
    """One round of 60 kB each way, and of local work that differs from device to device."""
    law = {"name": "distribution", "law": "lognormal", "mean_seconds_per_sample": 1.0, "variation": 0.6}
    return {
        "name": "sharing",
        "learn": False,
        "stop": {"rounds": 1},
        "topology": {"name": "star", "devices": DEVICES},
        "network": {
            "cell": {"radio": {"name": "fixed", "profile": "nb_iot_nb1"}, **air},
            "link": {"rate_bps": float("inf")},
        },
        "devices": {"classes": {"sensor": {"compute": {**law, "per": "device"}}}},
        "data": {"name": "declared", "samples_per_client": 20},
        "model": {"name": "declared", "parameters": 15_000},
        "training": {"learning_rate": 0.1, "batch_size": 5},
        "protocols": [{"name": "fedavg", "fraction": 1.0}],
    }


def crossings(air: dict[str, Any]) -> pd.DataFrame:
    """The rows of the air."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sharing.yaml"
        path.write_text(yaml.safe_dump(plant(air)))
        transfers = run(load(path), out=Path(folder) / "run").transfers
    return transfers[transfers["access"]]


def timelines(ax: Axes, rows: pd.DataFrame, title: str) -> Axes:
    """A line for each device: on the air as high as the part of its full rate that it has, waiting, computing."""
    for device, own in rows.groupby("client_index"):
        received_s = float(own.loc[own["direction"] == "downlink", "end_s"].iloc[0])
        sent_s = float(own.loc[own["direction"] == "uplink", "start_s"].iloc[0])
        ax.barh(device, sent_s - received_s, left=received_s, height=0.1, color=GREY)
        for row in own.itertuples():
            began_s = row.start_s + row.queued_s
            ax.barh(
                device, row.queued_s, left=row.start_s, height=0.42, color="none", edgecolor="#b9c0c7", hatch="////"
            )
            alone_s = row.bytes * 8 / (26_150 if row.direction == "downlink" else 62_500)
            height = 0.84 * alone_s / (row.end_s - began_s)
            ax.barh(
                device,
                row.end_s - began_s,
                left=began_s,
                height=height,
                color=DOWN if row.direction == "downlink" else UP,
            )
    end_s = float(rows["end_s"].max())
    ax.axvline(end_s, color=GREY, linestyle=":")
    ax.set_title(f"{title}: {end_s:.0f} s")
    ax.set_yticks(range(DEVICES), [f"device {number + 1}" for number in range(DEVICES)])
    ax.grid(visible=False, axis="y")
    return ax


def picture() -> Figure:
    figure = Figure(figsize=(11, 8.2), layout="constrained")
    panels = np.ravel(figure.subplots(2, 2, sharex=True, sharey=True))
    for ax, (title, air) in zip(panels, AIR.items(), strict=True):
        timelines(ax, crossings(air), title)
    panels[0].set_ylim(DEVICES - 0.4, -0.6)
    for ax in panels[2:]:
        ax.set_xlabel("simulated time (s)")
    looks = [
        Patch(color=DOWN, label="receiving; full height is its full rate"),
        Patch(color=UP, label="sending"),
        Patch(color=GREY, label="computing"),
        Patch(facecolor="none", edgecolor="#b9c0c7", hatch="////", label="waiting for the air"),
    ]
    figure.legend(handles=looks, loc="outside lower center", ncols=4)
    return figure


if __name__ == "__main__":
    with mpl.rc_context({**RC, "figure.dpi": 100}):
        print(save_figure(picture(), PICTURE))
