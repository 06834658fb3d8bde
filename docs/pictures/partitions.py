"""Draws docs/images/partitions.png: the same digits, spread over 40 clients in four ways.

``python docs/pictures/partitions.py``
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from fedsim.data.class_counts import class_counts
from fedsim.data.digits import Digits
from fedsim.data.raw_dataset import Clients
from fedsim.kernel.streams import Streams
from fedsim.viz.data_figures import classes_by_client
from fedsim.viz.save import save_figure
from fedsim.viz.style import RC

PICTURE = Path(__file__).resolve().parents[1] / "images/partitions.png"
CLIENTS = Clients(40, np.arange(40) // 10)
PARTITIONS = {
    "iid": {"name": "iid"},
    "dirichlet, alpha 0.5": {"name": "dirichlet", "alpha": 0.5},
    "classes_per_client, 2 classes": {"name": "classes_per_client", "classes": 2},
    "factory_preference, alpha 0.5": {"name": "factory_preference", "alpha": 0.5},
}


def picture() -> Figure:
    figure = Figure(figsize=(13, 8.4), layout="constrained")
    for part, (title, partition) in zip(figure.subfigures(2, 2).flat, PARTITIONS.items(), strict=True):
        data = Digits.model_validate({"partition": partition}).load(
            CLIENTS, lambda purpose: Streams(1)(purpose).generator()
        )
        factory = CLIENTS.factory if partition["name"] == "factory_preference" else None
        classes_by_client(class_counts(data), part, factory=factory, title=title, darkest=1.0)
    return figure


if __name__ == "__main__":
    with mpl.rc_context({**RC, "figure.dpi": 100}):
        print(save_figure(picture(), PICTURE))
