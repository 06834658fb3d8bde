"""What a finished run left in its folder, as tidy tables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedsim.errors import UserError, nearest
from fedsim.experiment.at_work import why_busy
from fedsim.experiment.command_to_resume import command_to_resume
from fedsim.experiment.no_run import what_it_is
from fedsim.experiment.read_results import AGAIN, check_runs, no_table, read_manifest, read_table
from fedsim.experiment.result_columns import (
    CONFUSION,
    CRITICAL_PATH,
    CRITICAL_PIECES,
    DEVICE_CLASSES,
    GROUPS,
    LINK_LOADS,
    LINKS,
    ROUNDS,
    STRAGGLERS,
    SUMMARY,
    TRANSFERS,
    Columns,
)
from fedsim.experiment.shown_results import as_html, as_text
from fedsim.experiment.trained_model import model_of_client, trained_model
from fedsim.files import read_own_file, shown
from fedsim.learning.operations.evaluate import MOST_CLASSES_COUNTED
from fedsim.learning.store_folder import WEIGHTS
from fedsim.learning.stored_values import Damaged, check_tensors
from fedsim.scenario.scalars import message_line, printable

if TYPE_CHECKING:
    from fedsim.models.torch_module import Module
    from fedsim.viz.shown_figure import ShownFigure

__all__ = ["NoRun", "Results", "load_results"]


TIMES = ("critical_path.csv", "critical_pieces.parquet", "stragglers.csv", "link_loads.csv")
"""Tables that say where the time went: a run has all of them, or is of a version that wrote none."""


class NoRun(UserError):
    """There is no finished run in a folder, and nothing is wrong with that."""


@dataclass(frozen=True, repr=False)
class Results:
    """A finished run. Tables are read when they are first asked for; one that is none any more is a `UserError`.

    As the last line of a notebook's cell, or printed, it shows the comparison of its protocols and its remarks.
    """

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Versions, seeds, platform, trace hashes, real seconds, peak memory."""
        return read_manifest(self.folder / "manifest.json")

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """A row for each protocol, seed and round; time, bytes and energy are cumulative."""
        return read_table(self.folder / "rounds.parquet", ROUNDS)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row for each protocol, seed and accounting."""
        return read_table(self.folder / "summary.csv", SUMMARY)

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """A row for each hop of each transfer. Raises `UserError` when the scenario did not save them."""
        path = self.folder / "transfers.parquet"
        if not path.exists():
            problem = "was not written; run the scenario with save_transfers: true"
            raise UserError(f"{shown(path)} {problem}")
        return read_table(path, TRANSFERS)

    @cached_property
    def links(self) -> pd.DataFrame:
        """A row for each protocol, seed, link and direction: bytes, utilisation, mean queue."""
        return read_table(self.folder / "links.csv", LINKS)

    @cached_property
    def critical_path(self) -> pd.DataFrame:
        """A row for each protocol, seed and round: the seconds of each part of it, such as ``airtime_s``.

        From ``start_s`` to ``end_s`` of the round the parts add up.
        """
        return self._times("critical_path.csv", CRITICAL_PATH)

    @cached_property
    def critical_pieces(self) -> pd.DataFrame:
        """A row for each piece of each critical path: its part, when, whose and on which link; both may be empty."""
        return self._times("critical_pieces.parquet", CRITICAL_PIECES)

    @cached_property
    def stragglers(self) -> pd.DataFrame:
        """A row for each protocol, seed and client, the worst first: rounds that it closed, and its lateness."""
        return self._times("stragglers.csv", STRAGGLERS)

    @cached_property
    def link_loads(self) -> pd.DataFrame:
        """Utilisation and mean queue of the busiest links over time: a row for each part of the simulated time."""
        return self._times("link_loads.csv", LINK_LOADS)

    def _times(self, name: str, columns: Columns) -> pd.DataFrame:
        """A table that says where the time of the runs went."""
        path = self.folder / name
        if not any(os.path.lexists(self.folder / table) for table in TIMES):
            version = self.manifest.get("fedsim")
            made = f"by fedsim {printable(version)}, " if isinstance(version, str) else "by "
            problem = f"was made {made}a version that did not write {name}"
            raise UserError(message_line(f"the run in {shown(self.folder)} {problem}; {AGAIN}"))
        return check_runs(read_table(path, columns), self.summary, path)

    @cached_property
    def groups(self) -> pd.DataFrame:
        """A row for each member of each group, each time that groups were drawn.

        Raises `UserError` when no protocol of the run has groups.
        """
        path = self.folder / "groups.parquet"
        if not path.exists():
            raise UserError(f"{shown(path)} was not written: no protocol of this run forms groups")
        return read_table(path, GROUPS)

    @cached_property
    def device_classes(self) -> pd.DataFrame:
        """A row for each protocol, seed, round and device class: its bytes, work and accuracy; bytes and work add up.

        Raises `UserError` when all devices of the run are of one class.
        """
        path = self.folder / "device_classes.csv"
        if not path.exists():
            raise UserError(f"{shown(path)} was not written: all devices of this run are of one class")
        table = read_table(path, DEVICE_CLASSES)
        _check_device_classes(table, self.rounds, path)
        return table

    @cached_property
    def confusion(self) -> pd.DataFrame:
        """A row for each pair of a true and a predicted class: how many samples, by the last model of each run.

        Raises `UserError` when nothing was counted: there are no classes, or too many, or nothing was learned.
        """
        path = self.folder / "confusion.csv"
        if not path.exists():
            why = f"no model was scored on at most {MOST_CLASSES_COUNTED} classes"
            raise UserError(f"{shown(path)} was not written: {why}")
        return read_table(path, CONFUSION)

    def __repr__(self) -> str:
        try:
            return as_text(self.name, self.folder, self.summary, self.remarks)
        except UserError as error:  # whoever looks at a variable is not to be interrupted
            return f"Results that cannot be read: {error}"

    def _repr_html_(self) -> str | None:
        try:
            return as_html(self.name, self.folder, self.summary, self.remarks)
        except UserError:  # the text says why
            return None

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.manifest["scenario"])

    @property
    def remarks(self) -> list[str]:
        """What could be misread in the scenario or in the results, a sentence each, as the run said it.

        A run of a version that did not keep them has none.
        """
        return list(self.manifest.get("remarks", []))

    def plot(self) -> ShownFigure:
        """The overview that ``fedsim plot`` saves: a matplotlib figure, which a notebook shows without pyplot.

        ``results.plot().savefig("overview.pdf")`` makes a file of it; `fedsim.plot` draws several runs into one.
        """
        from fedsim.viz.overview import overview  # with matplotlib

        return overview(self.rounds, self.summary)

    def final_weights(self, protocol: str, seed: int) -> dict[str, Path]:
        """Part -> safetensors file of the model at the end of a run; empty when nothing was learned.

        Without fedsim, ``safetensors.torch.load_file(path)`` gives the tensors of a part by name, and
        ``safetensors.numpy.load_file`` gives arrays. Raises `UserError` when there was no such run, and when a file is
        not as it was written.
        """
        return {part: self._weights(name) for part, name in self._row(protocol, seed).get("final_weights", {}).items()}

    def _row(self, protocol: str, seed: object) -> dict[str, Any]:
        """What the manifest says of a run. Raises `UserError` when there was no such run."""
        for row in self.manifest["runs"]:
            if row["protocol"] == protocol and row["seed"] == seed:
                return dict(row)
        where = shown(self.folder)
        if isinstance(seed, str):
            raise UserError(f"{where}: seed {seed!r} is text; a whole number is needed (remove the quotes)")
        runs = self.manifest["runs"]
        if seeds := [str(row["seed"]) for row in runs if row["protocol"] == protocol]:
            raise UserError(f"{where} has no run of {protocol!r} on seed {seed} (its seeds: {', '.join(seeds)})")
        near = nearest(str(protocol), {row["protocol"] for row in runs})
        known = ", ".join(f"{row['protocol']} on seed {row['seed']}" for row in runs)
        raise UserError(f"{where} has no run of {protocol!r}{near} (runs: {known})")

    def load_model(
        self, protocol: str, seed: int, *, device_class: str | None = None, client: str | None = None
    ) -> Module:
        """The model at the end of a run: a `torch.nn.Module` in ``eval()`` mode, in float32 on the CPU.

        It takes a batch of samples as the data set has them, (batch, channels, height, width) for images, and returns
        (batch, outputs) scores; ``argmax(1)`` is the class. Where device classes have models of their own,
        *device_class* says whose is meant; where each client has its own, *client* does. A fusion layer that a protocol
        has put in is there: it fuses the model's features with themselves. A user's own module comes back as what it
        is; **the code that the run's scenario names for it is run**. Neither the data set nor the rest of the scenario
        is needed.

        Raises `UserError` when there was no such run, when nothing was learned, when the weights are lost or damaged,
        and when the user's file has changed.
        """
        weights = self.final_weights(protocol, seed)
        row = self._row(protocol, seed)
        if not weights and self.manifest.get("retimed_from"):
            problem = f"has no weights of {protocol!r} on seed {seed}: the run that was trained has not kept this model"
            raise UserError(f"{shown(self.folder)} {problem}")
        if client is not None or "client_classes" in row:
            if device_class is not None:
                raise UserError("give either client or device_class, one of them and not both")
            return model_of_client(self.folder, self.manifest, row, weights, client)
        adapted_by = protocol if "model" in row else None
        return trained_model(self.folder, self.manifest, weights, device_class, adapted_by)

    def _weights(self, name: str) -> Path:
        """A safetensors file in the store."""
        path, problem = Path(name), "is no name of weights in a store"
        if WEIGHTS.fullmatch(name):
            path = Path(os.path.realpath(self.folder / self.manifest.get("store", "store"))) / name
            content = read_own_file(path)
            if content is None:
                problem = "is lost"
            else:
                try:
                    check_tensors(path.stem, content)
                    return path
                except Damaged as damage:
                    problem = str(damage)
        raise UserError(f"{shown(path)}: {problem}; {AGAIN}")


def _check_device_classes(table: pd.DataFrame, rounds: pd.DataFrame, path: Path) -> None:
    """Raise `UserError` unless each of the *rounds* has a row for each class, and each class has a client."""
    each = ["protocol", "seed", "round"]
    expected = rounds[each].merge(table[["device_class"]].drop_duplicates(), how="cross")
    matched = table[[*each, "device_class"]].merge(expected)
    if not len(table) == len(expected) == len(matched) or table.empty != rounds.empty or (table["clients"] < 1).any():
        problem = "not each round of rounds.parquet has one row for each class, with at least one client"
        raise no_table(path, problem)


def load_results(folder: Path | str) -> Results:
    """The results in a run folder.

    Raises `UserError` when there is no finished run in it: `NoRun`, unless it is one that has lost something.
    """
    folder = Path(folder)
    where = shown(folder)
    path = folder / "manifest.json"
    if not os.path.exists(folder):  # unlike Path.exists, False also for what is no name of a file
        others = [str(other) for other in folder.parent.iterdir() if other != folder] if folder.parent.is_dir() else []
        raise UserError(f"there is no run folder {where}{nearest(str(folder), others)}")
    if not os.path.lexists(path):
        if all(os.path.lexists(folder / name) for name in ("rounds.parquet", "summary.csv")):
            raise UserError(f"{where} has lost its manifest.json; {AGAIN}")
        raise NoRun(what_it_is(folder))
    results = Results(folder)
    if results.manifest["status"] != "finished":
        if busy := why_busy(folder):
            raise NoRun(busy)
        raise NoRun(f"the run in {where} is not finished; go on with: {command_to_resume(folder, results.manifest)}")
    return results
