"""Draws docs/images/hfedms_*.png, fedgsp_*.png, fedgs_systems.png and flexifed_*.png: the papers' figures, from
docs/claims.

``python docs/pictures/claims.py [NAME ...]``; without names, all are drawn.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import fedsim
from fedsim.experiment.compare import summary_at
from fedsim.viz import figures
from fedsim.viz.group_figures import groups_over_rounds
from fedsim.viz.overview import named_class_figures
from fedsim.viz.save import save_figure
from fedsim.viz.style import RC, looks

DOCS = Path(__file__).resolve().parents[1]
DATA = {"femnist": "FEMNIST", "glyphs": "glyphs"}
OVER = {
    "bytes": (figures.accuracy_over_bytes, "traffic", "sent and received by clients, bytes"),
    "time": (figures.accuracy_over_time, "simulated time", "simulated time, s"),
}
TITLES = {"claims-femnist": "FEMNIST", "claims-glyphs": "glyphs"}
SYSTEMS = ["fedavg", "fedprox", "hfedms_s", "hfedms_d"]
ABLATIONS = ["hfedms_s", "hfedms_d", "no SCC", "no compensation", "oracle"]
GROWTH = re.compile(r"(?P<name>\w+) (?P<alpha>[\d.]+) (?P<beta>\d+)")


def rounds_of(scenario: str) -> pd.DataFrame:
    return pd.read_csv(DOCS / f"claims/rounds/{scenario}.csv")


def hfedms_systems() -> Figure:
    """Tables III and IV as curves: accuracy over rounds, over bytes, and on unseen writers."""
    figure = Figure(figsize=(13, 7.4), layout="constrained")
    for row, (scenario, title) in zip(figure.subplots(2, 3), TITLES.items(), strict=True):
        rounds = rounds_of(scenario)
        rounds = rounds[rounds["protocol"].isin(SYSTEMS)]
        styles = looks(SYSTEMS)
        figures.accuracy_over_rounds(rounds, row[0], styles).set_title(f"{title}: over rounds")
        figures.accuracy_over_bytes(rounds, row[1], styles).set_title(f"{title}: over traffic")
        unseen = rounds.assign(accuracy=rounds["accuracy_unseen"])
        figures.accuracy_over_rounds(unseen, row[2], styles).set_title(f"{title}: unseen clients, over rounds")
    for axes in figure.axes[1:]:
        axes.get_legend().remove()
    return figure


def stream_competitors() -> Figure:
    """HFedMS's Table III with all competitors, over rounds and over bytes."""
    return competitors({f"competitors-stream-{data}": title for data, title in DATA.items()}, "bytes")


def static_competitors() -> Figure:
    """FedGSP's Table 1 with all competitors, over rounds and over time."""
    return competitors({f"competitors-static-{data}": title for data, title in DATA.items()}, "time")


def competitors(scenarios: dict[str, str], spent: str) -> Figure:
    """A row for each scenario, with its title: all systems over rounds, and over what they spent."""
    over, title, label = OVER[spent]
    figure = Figure(figsize=(12, 0.8 + 4 * len(scenarios)), layout="constrained")
    kept = {scenario: without_failed(rounds_of_all(scenario)) for scenario in scenarios}
    styles = looks([*kept.values()][-1]["protocol"].unique())
    for row, (scenario, data) in zip(figure.subplots(len(kept), 2, squeeze=False), scenarios.items(), strict=True):
        figures.accuracy_over_rounds(kept[scenario], row[0], styles, legend=False).set_title(f"{data}: over rounds")
        over(kept[scenario], row[1], styles, legend=False).set_title(f"{data}: over {title}")
        row[1].set(xscale="log", xlabel=label)  # a logarithmic axis has plain numbers
    figures.curves_of(kept[scenario]).legend_below(figure)
    return figure


def rounds_of_all(scenario: str) -> pd.DataFrame:
    """With those of the systems that take longer, where they have a scenario of their own."""
    names = (scenario, f"{scenario}-once")
    return pd.concat(rounds_of(name) for name in names if (DOCS / f"claims/rounds/{name}.csv").exists())


def without_failed(rounds: pd.DataFrame) -> pd.DataFrame:
    """A system that was run with a second rate, as its best one fails on a seed, has the second."""
    for label in rounds["protocol"].unique():
        system, comma, _ = label.partition(", ")
        if comma:
            rounds = rounds[rounds["protocol"] != system].replace({"protocol": {label: system}})
    return rounds


def hfedms_scc() -> Figure:
    """HFedMS Fig. 9b: what SCC is good for, over bytes."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, (scenario, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        rounds = rounds_of(scenario)
        rounds = rounds[rounds["protocol"].isin(ABLATIONS)]
        figures.accuracy_over_bytes(rounds, axes, looks(ABLATIONS)).set_title(f"{title}: over traffic")
        axes.set_xlim(0, 200)  # GB
    return figure


def hfedms_forgetting() -> Figure:
    """HFedMS Fig. 9a: accuracy on the batches of a round that have passed, beside the accuracy on pooled tests."""
    passed = pd.read_csv(DOCS / "claims/forgetting.csv").assign(loss=0.0)  # a round without one was not evaluated
    figure = Figure(figsize=(15, 4.2), layout="constrained")
    styles = looks(passed["protocol"].unique())
    samples = "on the samples of round 21"
    panels = [("passed", f"{samples}, to round 30", 30), ("passed", samples, 100), ("pooled", "on pooled tests", 100)]
    for axes, (tests, title, last) in zip(figure.subplots(1, 3), panels, strict=True):
        rounds = passed[passed["round"] <= last]
        rounds = rounds.assign(accuracy=rounds[tests])
        figures.accuracy_over_rounds(rounds, axes, styles, legend=False).set(title=title, ylabel="accuracy")
        axes.axvline(21, color="0.6", linestyle=":", zorder=0)
    figures.curves_of(rounds, styles).legend_below(figure)
    return figure


def hfedms_intervals() -> Figure:
    """HFedMS Fig. 10: the interval T of full synchronisation, over bytes."""
    rounds = rounds_of("hfedms-fig10-small")
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    figures.accuracy_over_bytes(rounds, left)
    figures.accuracy_over_rounds(rounds, right)
    return figure


def fedgsp_grouping() -> Figure:
    """FedGSP Fig. 3b and 3c, HFedMS Fig. 7: random groups, groups by ICG, ever more groups by ICG."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    for row, (scenario, title) in zip(
        figure.subplots(2, 2),
        {"claims-skew": "glyphs, 3 classes for each", "fedgsp-fig3-small": "glyphs"}.items(),
        strict=True,
    ):
        rounds = rounds_of(scenario)
        figures.accuracy_over_rounds(rounds, row[0]).set_title(f"{title}: accuracy")
        figures.loss_over_rounds(rounds, row[1]).set_title(f"{title}: loss")
        row[1].get_legend().remove()
    return figure


def fedgsp_sampling() -> Figure:
    """FedGSP Fig. 5: the share kappa of groups that take part."""
    rounds = rounds_of("fedgsp-fig5-small")
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    figures.accuracy_over_rounds(rounds, left)
    summary = summary_at(rounds)
    figures.time_by_protocol(summary, middle)
    figures.traffic_by_protocol(summary, right)
    return figure


def growths() -> Figure:
    """FedGSP Fig. 4, HFedMS Figs. 8a to 8c: the loss over the coefficients of three growths."""
    summary = summary_at(rounds_of("hfedms-fig8-small"))
    losses = summary.groupby("protocol", sort=False)["loss"].mean().reset_index()
    grid = losses["protocol"].str.extract(GROWTH).assign(loss=losses["loss"])
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    panels = grid.groupby("name", sort=False)
    for axes, (name, cells) in zip(figure.subplots(1, panels.ngroups), panels, strict=True):
        table = cells.astype({"alpha": float, "beta": int}).pivot(index="alpha", columns="beta", values="loss")
        axes.imshow(table, cmap="viridis_r", vmin=grid["loss"].min(), vmax=grid["loss"].max(), aspect="auto")
        axes.set(title=f"{name}: test loss", xlabel="beta", ylabel="alpha")
        axes.set_xticks(range(table.shape[1]), table.columns.astype(str))
        axes.set_yticks(range(table.shape[0]), table.index.astype(str))
        axes.grid(visible=False)
        middle = grid["loss"].min() / 2 + grid["loss"].max() / 2
        for (row, column), loss in np.ndenumerate(table.to_numpy()):
            colour = "white" if loss > middle else "black"
            axes.text(column, row, f"{loss:.2f}", ha="center", va="center", color=colour)
    return figure


def fedgs_systems() -> Figure:
    """FedGS Fig. 6 as curves over rounds, time, and bytes in the air and on the backhaul."""
    figure = Figure(figsize=(15, 7.4), layout="constrained")
    titles = {"claims-fedgs-femnist": "FEMNIST's writers", "claims-fedgs-skew": "3 classes for each device"}
    for row, (scenario, title) in zip(figure.subplots(2, 4), titles.items(), strict=True):
        rounds = rounds_of(scenario)
        figures.accuracy_over_rounds(rounds, row[0], legend=False).set_title(f"{title}: over rounds")
        figures.accuracy_over_time(rounds, row[1], legend=False).set_title("over simulated time")
        figures.accuracy_over_bytes(rounds, row[2], legend=False).set_title("over traffic in the air")
        backhaul = rounds.assign(transfer_bytes=rounds["backbone_bytes"])
        figures.accuracy_over_bytes(backhaul, row[3], legend=False).set_title("over traffic on the backhaul")
        labels = ("simulated time, s", "sent and received by devices, bytes", "on the backhaul, bytes")
        for axes, label in zip(row[1:], labels, strict=True):  # a logarithmic axis has plain numbers
            axes.set(xscale="log", xlabel=label, ylabel="")
    figures.curves_of(rounds).legend_below(figure)
    return figure


def flexifed_systems() -> Figure:
    """FlexiFed's five strategies over rounds, with equal shards and with two shards for each client."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    titles = {"claims-flexifed": "equal shards, three seeds", "claims-flexifed-shards": "one or two classes, one seed"}
    for axes, (scenario, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        rounds = rounds_of(scenario)
        figures.accuracy_over_rounds(rounds, axes, legend=False).set(title=title, ylabel="accuracy on own tests")
    figures.curves_of(rounds_of("claims-flexifed")).legend_below(figure)
    return figure


def flexifed_classes() -> Figure:
    """What a device of each class has sent and received, and what its class has reached."""
    table = pd.read_csv(DOCS / "claims/device_classes/claims-flexifed.csv")
    return dict(named_class_figures(table, table["protocol"].unique()))["class_accuracy_over_bytes"]


def flexifed_studies() -> Figure:
    """FlexiFed by the number of versions, of clients and of common layers: the last accuracy on own tests."""
    table = pd.read_csv(DOCS / "claims/flexifed_studies.csv")
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    labels = {"versions": "versions of the model", "clients": "clients", "common layers": "most layers in common"}
    styles = looks(table["protocol"])
    for axes, (study, label) in zip(figure.subplots(1, 3, sharey=True), labels.items(), strict=True):
        for protocol, runs in table[table["study"] == study].groupby("protocol", sort=False):
            look, points = styles[str(protocol)], runs.groupby("number")["accuracy"].agg(["mean", "min", "max"])
            line = {"color": look.colour, "linestyle": look.line, "marker": look.marker}
            axes.plot(points.index, points["mean"], label=protocol, **line)
            axes.fill_between(points.index, points["min"], points["max"], color=look.colour, alpha=0.18, linewidth=0)
        axes.set(xlabel=label, xticks=sorted(points.index), title=study)
    figure.axes[0].set_ylabel("accuracy on own tests")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, title="mean and range over three seeds")
    return figure


def groups() -> Figure:
    """HFedMS Fig. 8d: groups over 500 rounds, and how long they are; simulated without training."""
    overrides = ["learn=false", "protocols=[{name: hfedms_s}]"]
    scenario = fedsim.load(DOCS.parent / "scenarios/paper/hfedms_table3.yaml", overrides=overrides)
    with tempfile.TemporaryDirectory() as folder:
        results = fedsim.run(scenario, out=Path(folder) / "run")
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        groups_over_rounds(results.groups, figure.subplots())
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "hfedms_systems": hfedms_systems,
    "stream_competitors": stream_competitors,
    "static_competitors": static_competitors,
    "hfedms_scc": hfedms_scc,
    "hfedms_forgetting": hfedms_forgetting,
    "hfedms_intervals": hfedms_intervals,
    "fedgsp_grouping": fedgsp_grouping,
    "fedgsp_sampling": fedgsp_sampling,
    "growths": growths,
    "fedgs_systems": fedgs_systems,
    "flexifed_systems": flexifed_systems,
    "flexifed_classes": flexifed_classes,
    "flexifed_studies": flexifed_studies,
    "groups": groups,
}

if __name__ == "__main__":
    with mpl.rc_context({**RC, "figure.dpi": 100}):
        for name in sys.argv[1:] or PICTURES:
            print(save_figure(PICTURES[name](), DOCS / f"images/{name}.png"))
