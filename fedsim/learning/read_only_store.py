"""A store that is only read, by whoever wants to know what has been learned and computes nothing.

Nothing is written into it, not even a lock, so it may be where nothing can be written. Left out: tensors. Whoever
computes nothing has no use for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fedsim.files import read_own_file, shown
from fedsim.learning.graph import Handle
from fedsim.learning.known_metrics import KnownMetrics, complete_lines
from fedsim.learning.operations.operation import Value
from fedsim.learning.store_folder import check_is_store, files_in
from fedsim.learning.stored_values import Damaged, read_index

__all__ = ["Computed", "ReadOnlyStore"]

_KEY = re.compile(rb'"key":"([0-9a-f]{32})"')


class Computed(NamedTuple):
    """What a ledger says of a node that was computed."""

    key: str
    operation: str
    inputs: tuple[str, ...]
    """Keys."""
    protocol: str | None
    """Its title."""
    seed: int | None
    round_number: int | None
    """None for the model at the start."""
    client: int | None
    """None for what no client has done."""


class ReadOnlyStore:
    """What *run* has in the store *folder*: numbers and ledgers, of all runs, as they share them, and its own models.

    *tell* hears of damage. Raises `UserError` when *folder* is no store.
    """

    def __init__(self, folder: Path, run: str, tell: Callable[[str], None]) -> None:
        check_is_store(folder)
        self.folder = folder
        self._run = run
        self._finals = self._read_finals(tell)
        self._metrics = KnownMetrics(tell, then="what it held counts as lost")
        for path in files_in(folder, "metrics"):
            self._metrics.read(path)

    def scalar(self, handle: Handle) -> Value | None:
        """The stored metrics, or the number, that a planned *handle* stands for; None when there is none."""
        return self._metrics.get(handle.stored_name)

    def has_other_plans(self, handle: Handle) -> bool:
        """Whether the same was computed as a part of another plan, whose value is another one."""
        begin, end = f"{handle.node.key}-", f"-{handle.output}"
        return any(name.startswith(begin) and name.endswith(end) for name in self._metrics.names())

    def keep_final(self, model: Mapping[str, Handle]) -> dict[str, str]:
        """Part -> path inside the store, if the run keeps all of the planned *model* for ever; empty if it does not."""
        names = {part: handle.stored_name for part, handle in model.items()}
        kept = self._finals.issuperset(names.values())
        return {part: f"tensors/{name}.safetensors" for part, name in names.items()} if kept else {}

    def computed(self) -> Iterator[Computed]:
        """What the ledgers have: first that of the run, then those of the other runs in the store."""
        ledgers = files_in(self.folder, "ledger")
        for path in sorted(ledgers, key=lambda path: path.stem != self._run):
            yield from filter(None, map(_computed, complete_lines(path)))

    def missing(self, keys: Collection[str]) -> set[str]:
        """Those of the *keys* that no ledger has."""
        left = {key.encode() for key in keys}
        for path in files_in(self.folder, "ledger"):
            left -= set(_KEY.findall(read_own_file(path) or b""))
        return {key.decode() for key in left}

    def _read_finals(self, tell: Callable[[str], None]) -> set[str]:
        """Names of the tensors of the run's finished models."""
        path = self.folder / "index" / f"{self._run}.json"
        try:
            content = read_own_file(path)
            finals = {} if content is None else read_index(self._run, content).finals
        except Damaged as damage:
            tell(f"{shown(path)}: {damage}; finished models count as lost")
            return set()
        return {name for parts in finals.values() for name in parts.values()}


def _computed(line: bytes) -> Computed | None:
    """None for other lines, and for those that no store has written."""
    try:
        row = json.loads(line)
        if row.pop("event") != "computed":
            return None
        made = Computed(
            row["key"],
            row["operation"],
            tuple(row["inputs"]),
            row.get("protocol"),
            row.get("seed"),
            row.get("round"),
            row.get("client"),
        )
        hash(made)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    is_number = all(isinstance(number, int | None) for number in (made.round_number, made.client))
    return made if is_number and all(isinstance(key, str) for key in (made.key, *made.inputs)) else None
