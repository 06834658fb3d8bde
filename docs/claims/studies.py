"""Writes flexifed_studies.csv: FlexiFed by the number of versions, of clients and of common layers.

``python docs/claims/studies.py [FOLDER]`` runs scenarios/paper/flexifed_studies_small.yaml, ten times with other
settings, into the folder (runs/studies): 20 min on two cores. A run that is there is not made again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from tables import HERE, SCENARIOS, write

import fedsim

VERSIONS = {1: "[d32]", 2: "[d32, d44]", 3: "[d32, d44, d56]", 4: "[d20, d32, d44, d56]"}
CLIENTS = 24
THREE = f"topology.device_classes={VERSIONS[3]}"
ALONE = "protocols=[{name: flexifed, label: max, fraction: 1.0, layers: %d}]"
STUDIES: dict[str, dict[int, list[str]]] = {
    "versions": {number: [f"topology.device_classes={kinds}"] for number, kinds in VERSIONS.items()},
    "clients": {
        number: [f"topology.devices={number}", f"data.unseen_clients={CLIENTS - number}"] for number in (8, 16, 24)
    },
    "common layers": {
        layers: [THREE, "topology.devices=3", f"data.unseen_clients={CLIENTS - 3}", ALONE % layers]
        for layers in (1, 4, 8, 11)
    },
}
"""Study -> number -> what it sets. With one client of each depth, 32, 44 and 56 have at most 11 layers in common."""


def studied(folder: Path) -> pd.DataFrame:
    """A row for each study, number, protocol and seed: accuracy of clients' own models after the last round."""
    rows = []
    for study, points in STUDIES.items():
        for number, overrides in points.items():
            scenario = fedsim.load(SCENARIOS / "flexifed_studies_small.yaml", overrides=overrides)
            out = folder / f"{study}-{number}".replace(" ", "-")
            summary = fedsim.run(scenario, out=out, resume=(out / "manifest.json").exists()).summary
            for run in summary.to_dict("records"):
                found = {name: run[name] for name in ("protocol", "seed")}
                rows.append({"study": study, "number": number, **found, "accuracy": round(run["final_accuracy"], 6)})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    write("flexifed_studies.csv", studied(Path(sys.argv[1]) if sys.argv[1:] else HERE.parents[1] / "runs/studies"))
