"""Arguments that several commands take, and how their text is read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fedsim.experiment.host import HostOptions

__all__ = [
    "MOST_NODES",
    "Commands",
    "add_limits",
    "add_overrides",
    "add_pool",
    "add_run_folders",
    "add_scenario",
    "add_training",
    "at_least_one",
    "host_options",
    "place",
    "reason",
    "whole_numbers",
    "words",
]

MOST_NODES = 301_000
"""A hundred thousand factories with an edge server, a base station and a sensor each. The garbage collector waits for
as many journeys: what a network is made of is no garbage while it is checked."""

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_scenario(parser: argparse.ArgumentParser) -> None:
    """The scenario's file."""
    parser.add_argument("scenario", metavar="SCENARIO", type=Path, help="The scenario, a YAML file.")


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """``--set``, as often as wanted."""
    parser.add_argument(
        "--set",
        metavar="KEY.PATH=VALUE",
        dest="overrides",
        action="append",
        default=[],
        help="Change one value of the scenario, as in --set training.epochs=2 or --set protocols.fedprox.mu=0.1; "
        "may be given several times.",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """``--most-nodes`` and ``--all-data``, for commands that are to answer in seconds whatever they are given."""
    parser.add_argument(
        "--most-nodes",
        metavar="N",
        type=at_least_one,
        default=MOST_NODES,
        help=f"Refuse larger networks; without it, {MOST_NODES:,} nodes, which take some seconds and 500 MB.",
    )
    parser.add_argument(
        "--all-data",
        action="store_true",
        help="Look at all samples, however many; without it, a source that takes more than some seconds or 500 MB "
        "is refused.",
    )


def add_run_folders(parser: argparse.ArgumentParser) -> None:
    """One run folder or more, or folders of sweeps."""
    parser.add_argument(
        "folders",
        metavar="RUN_DIR",
        nargs="+",
        type=Path,
        help="Folders of finished runs; that of a finished sweep stands for all its points.",
    )


def add_training(parser: argparse.ArgumentParser) -> None:
    """What trains, where, and where it keeps what it has learned: options that change no result."""
    parser.add_argument(
        "--executor",
        metavar="NAME",
        default="auto",
        help="What trains on this machine: a name from `fedsim list executors`, or auto, which goes by the model and "
        "the torch device.",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=at_least_one,
        help="Processes that train at the same time, with the same results for any number; without it, one for each "
        "core.",
    )
    parser.add_argument(
        "--torch-device", choices=("cpu", "cuda"), default="cpu", help="Where torch computes; cpu without this option."
    )
    parser.add_argument(
        "--precision",
        choices=("float32", "float64", "bfloat16", "tf32"),
        default="float32",
        help="In what torch computes, as far as the executor can (tf32: on cuda alone); float32 without this option.",
    )
    parser.add_argument(
        "--store",
        metavar="DIR",
        type=place,
        help="Where learned values are kept; without it, in the folder of the run, sweep or search.",
    )
    parser.add_argument(
        "--checkpoint-interval-s",
        metavar="S",
        type=float,
        help="Real seconds between checkpoints, which are what a kill can cost; 30 without this option. After a "
        "checkpoint that has taken more than a second, at least four times as long as that.",
    )


def add_pool(parser: argparse.ArgumentParser) -> None:
    """Where several runs go that are made at the same time."""
    parser.add_argument(
        "--pool",
        choices=("local", "ray"),
        default="local",
        help="Where runs go: processes of this machine, which is the default, or a Ray cluster.",
    )
    parser.add_argument(
        "--pool-size",
        metavar="N",
        type=at_least_one,
        help="Runs at the same time; without it one for each core, on torch device cuda one, and on a cluster as many "
        "as it has room for.",
    )


def place(text: str) -> Path:
    """The path of a folder or a file that is to be written.

    >>> place("runs/plant").name
    'plant'
    """
    if not text:
        raise argparse.ArgumentTypeError("the path must not be empty")
    return Path(text)


def host_options(arguments: argparse.Namespace) -> HostOptions:
    """What `add_training` was given. Raises `UserError` for a value that is wrong whatever is run."""
    from fedsim.experiment.host import CHECKPOINT_INTERVAL_S, HostOptions

    interval_s = arguments.checkpoint_interval_s
    return HostOptions(
        executor=arguments.executor,
        workers=arguments.workers,
        torch_device=arguments.torch_device,
        precision=arguments.precision,
        checkpoint_interval_s=CHECKPOINT_INTERVAL_S if interval_s is None else interval_s,
    )


def words(text: str) -> list[str]:
    """The parts of a comma-separated text.

    >>> words("fedavg, fedprox")
    ['fedavg', 'fedprox']
    """
    return [word.strip() for word in text.split(",")]


def whole_numbers(text: str) -> list[int]:
    """The numbers of a comma-separated text.

    >>> whole_numbers("1,2,3")
    [1, 2, 3]
    """
    try:
        return [int(word) for word in words(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be whole numbers with commas between them, as in 1,2,3"
        ) from None


def at_least_one(text: str) -> int:
    """A whole number that is not below one.

    >>> at_least_one("2")
    2
    """
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1, as in 2")
    return number


def reason(error: OSError) -> str:
    """What the system says, and of which file.

    >>> reason(FileNotFoundError(2, "No such file or directory", "plant.yaml"))
    'No such file or directory: plant.yaml'
    """
    said = error.strerror or str(error)
    return said if error.filename is None else f"{said}: {error.filename}"
