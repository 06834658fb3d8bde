"""The figures of a scenario's data as files: what each client has, and a look at some samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedsim.data.dataset import FederatedDataset, class_counts
from fedsim.topology.graph import Topology
from fedsim.topology.places import factories, factory_names
from fedsim.viz.data_figures import classes_by_client, samples_per_client
from fedsim.viz.sample_sheet import sample_sheet
from fedsim.viz.save import save_figure
from fedsim.viz.style import RC

__all__ = ["save_data_figures"]

MOST_CLIENTS = 5_000
MOST_COUNTS = 2_000_000
"""Of which there are more than a picture has points."""
LETTERS = 70
"""That have room beside each other: where the names of all factories have more, they are numbered."""


def save_data_figures(
    data: FederatedDataset, topology: Topology, folder: Path, text: Callable[[NDArray[Any]], str] | None = None
) -> list[Path]:
    """Draw *data* into files of *folder*; returns their paths. *text* makes text of one stored sample of ids.

    ``samples.png`` has the sizes of the clients' training sets. ``classes.png`` has their classes, where there are any,
    and ``sheet.png`` shows some samples, unless they are only declared.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context(RC):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        samples_per_client(data.client_samples, figure.add_subplot())
        paths.append(save_figure(figure, folder / "samples.png"))
        if data.classes is not None:
            figure = Figure(figsize=(9.0, 5.5), layout="constrained")
            names = factory_names(topology)
            one_in = max(math.ceil(data.clients / MOST_CLIENTS), math.ceil(data.clients * data.classes / MOST_COUNTS))
            some = slice(None, None, one_in)
            classes_by_client(
                class_counts(data, some),
                figure,
                one_in=one_in,
                factory=factories(topology)[some] if len(names) > 1 else None,
                factory_names=names if sum(map(len, names)) <= LETTERS else (),
                class_names=data.class_names,
            )
            paths.append(save_figure(figure, folder / "classes.png"))
        if data.stored is not None:
            sheet = sample_sheet(data, rows="client" if data.regression else "class", decode=text)
            paths.append(save_figure(sheet, folder / "sheet.png"))
    return paths
