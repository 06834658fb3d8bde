"""The columns of the tables in a run folder, as far as somebody reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedsim.experiment.means_over_seeds import METRICS
from fedsim.metrics.critical_path import PARTS

__all__ = [
    "CONFUSION",
    "CRITICAL_PATH",
    "CRITICAL_PIECES",
    "DEVICE_CLASSES",
    "GROUPS",
    "LINKS",
    "LINK_LOADS",
    "ROUNDS",
    "STRAGGLERS",
    "SUMMARY",
    "TRANSFERS",
    "Columns",
]


@dataclass(frozen=True)
class Columns:
    """What is read of a table; it may have other columns."""

    text: tuple[str, ...]
    whole: tuple[str, ...]
    numbers: tuple[str, ...]
    """Not below 0; empty where something is not known."""
    infinite: tuple[str, ...] = ()
    """Of `numbers`: those that may be infinite."""
    optional: tuple[str, ...] = ()
    """More numbers, which not every table has."""
    chosen: bool = False
    """Whether it may have columns of chosen metrics, which are numbers too; errors among them may be infinite."""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of `text`: columns with only so many values."""
    has_rows: bool = False
    """Always; a run in which no round ended has none in some tables."""
    complete: tuple[str, ...] = ()
    """Columns of which each combination of values has one row for each protocol and seed."""
    key: tuple[str, ...] = ()
    """Columns that say, with protocol and seed, which row it is: no two rows have the same."""


_COSTS = ("sim_time_s", "uplink_bytes", "downlink_bytes", "transfer_bytes", "network_bytes", "energy_j")
_SCORES = ("final_accuracy", "best_accuracy", "loss", "time_to_target_s", "bytes_to_target", "rounds_to_target")

ROUNDS = Columns(
    text=("protocol",),
    whole=("seed", "round"),
    numbers=(*_COSTS, "accuracy", "loss"),
    infinite=("loss",),
    optional=("participants", "backbone_bytes"),
    chosen=True,
    key=("round",),
)
SUMMARY = Columns(
    text=("protocol", "accounting"),
    whole=("seed",),
    numbers=(*_COSTS, *_SCORES),
    infinite=("loss", *(metric for metric in METRICS if metric.startswith("rmse"))),
    optional=("target_accuracy", *(metric for metric in METRICS if metric not in (*_COSTS, *_SCORES))),
    chosen=True,
    choices={"accounting": ("event", "formula")},
    has_rows=True,
    key=("accounting",),
)
LINKS = Columns(
    text=("protocol", "link", "direction"),
    whole=("seed",),
    numbers=("bytes", "utilisation", "mean_queue"),
    choices={"direction": ("uplink", "downlink")},
    has_rows=True,
    complete=("link", "direction"),
)
TRANSFERS = Columns(text=("protocol",), whole=("seed",), numbers=("bytes",))
DEVICE_CLASSES = Columns(
    text=("protocol", "device_class"),
    whole=("seed", "round", "clients"),
    numbers=("sim_time_s", "uplink_bytes", "downlink_bytes", "compute_s", "accuracy", "loss"),
    infinite=("loss",),
    optional=("uplinks", "uplink_s", "downlinks", "downlink_s", "trainings"),
    chosen=True,
)
CONFUSION = Columns(
    text=("protocol", "test_set", "true", "predicted"),
    whole=("seed", "true_index", "predicted_index", "count"),
    numbers=("true_index", "predicted_index", "count"),
    choices={"test_set": ("global", "clients", "unseen", "own")},
    has_rows=True,
)
CRITICAL_PATH = Columns(
    text=("protocol",),
    whole=("seed", "round"),
    numbers=("start_s", "end_s", *(f"{part}_s" for part in PARTS)),
    key=("round",),
)
CRITICAL_PIECES = Columns(
    text=("protocol", "part"),
    whole=("seed", "round", "client_index"),
    numbers=("start_s", "end_s"),
    choices={"part": PARTS},
)
STRAGGLERS = Columns(
    text=("protocol", "client"),
    whole=("seed", "client_index", "rounds", "closed"),
    numbers=("critical_s",),
    key=("client_index",),
)
LINK_LOADS = Columns(
    text=("protocol", "link", "direction"),
    whole=("seed",),
    numbers=("start_s", "end_s", "utilisation", "mean_queue"),
    choices={"direction": ("uplink", "downlink")},
)
GROUPS = Columns(text=("protocol", "client"), whole=("seed", "round", "group", "position"), numbers=())
