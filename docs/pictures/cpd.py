"""Draws docs/images/cpd.png, FedGSP's Fig. 3a and HFedMS's Fig. 6 of our data, and writes docs/claims/cpd.csv.

``FEDSIM_DATA=... python docs/pictures/cpd.py``; the data are those of scenarios/paper/claims_*.yaml.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import fedsim
from fedsim.data.class_counts import class_counts
from fedsim.data.distances import cpd, pairwise
from fedsim.grouping.icg import ICG
from fedsim.grouping.quality import counts_of
from fedsim.grouping.settings import RandomGroups
from fedsim.scenario.build import gather_materials
from fedsim.viz.group_figures import distances_between_pairs
from fedsim.viz.save import save_figure
from fedsim.viz.style import RC

DOCS = Path(__file__).resolve().parents[1]
DATA = {
    "femnist": "FEMNIST, 368 writers",
    "glyphs": "glyphs, 368 cameras",
    "skew": "glyphs, 3 classes for each of 368 cameras",
}
GROUPS = (10, 50)
SEEDS = (1, 2, 3)


def distances(data: str, seed: int) -> dict[str, np.ndarray]:
    """CPDs of all pairs: of clients (which are FedAvg's groups), of random groups, of groups by ICG."""
    scenario = fedsim.load(DOCS.parent / f"scenarios/paper/claims_{data}.yaml")
    counts = class_counts(gather_materials(scenario, seed=seed).dataset)
    found = {"clients": counts}
    for number in GROUPS:
        for name, grouping in (("random", RandomGroups()), ("ICG", ICG())):
            groups = grouping.groups(counts, number, np.random.default_rng(seed))
            found[f"{number} {name}"] = counts_of(counts, groups)
    return {name: pairwise(cpd, each)[np.triu_indices(len(each), 1)] for name, each in found.items()}


def main() -> None:
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    rows = []
    for axes, (data, title) in zip(figure.subplots(1, len(DATA)), DATA.items(), strict=True):
        found = [distances(data, seed) for seed in SEEDS]
        distances_between_pairs(found[0], axes)
        axes.set(title=title, ylabel="class probability distance of a pair")
        axes.set(yscale="log", ylim=(min(np.percentile(pairs[pairs > 0], 2) for pairs in found[0].values()), None))
        medians = {name: float(np.mean([np.median(pairs[name]) for pairs in found])) for name in found[0]}
        rows += [
            {
                "data": data,
                "groups": number,
                **{
                    f"median, {who}": f"{median:.4g}"
                    for who, median in (
                        ("clients", medians["clients"]),
                        ("random groups", medians[f"{number} random"]),
                        ("ICG", medians[f"{number} ICG"]),
                    )
                },
                "ICG / random groups": f"{medians[f'{number} ICG'] / medians[f'{number} random']:.2f}",
                "ICG / clients": f"{medians[f'{number} ICG'] / medians['clients']:.4f}",
            }
            for number in GROUPS
        ]
    table = pd.DataFrame(rows)
    (DOCS / "claims/cpd.csv").write_text(table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline="")
    print(table.to_string())
    print(save_figure(figure, DOCS / "images/cpd.png"))


if __name__ == "__main__":
    with mpl.rc_context({**RC, "figure.dpi": 100}):
        main()
