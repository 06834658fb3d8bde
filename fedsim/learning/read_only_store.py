"""A store that is only read, by whoever wants to know what has been learned and computes nothing.

Nothing is written into it, not even a lock, so it may be where nothing can be written. Left out: tensors. Whoever
computes nothing has no use for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedsim.files import read_own_file, shown
from fedsim.learning.graph import Handle
from fedsim.learning.operations.operation import Value
from fedsim.learning.store_folder import check_is_store, files_in
from fedsim.learning.stored_values import Damaged, read_metrics

__all__ = ["ReadOnlyStore"]

_KEY = re.compile(rb'"key":"([0-9a-f]{32})"')


class ReadOnlyStore:
    """The metrics and numbers of all runs in the store *folder*, and their ledgers. *tell* hears of damage.

    Raises `UserError` when *folder* is no store.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        check_is_store(folder)
        self.folder = folder
        self._metrics: dict[str, Value] = {}
        for path in files_in(folder, "metrics"):
            damaged = 0
            for number, line in enumerate(_lines(path), start=1):
                try:
                    name, metrics = read_metrics(line)
                    self._metrics[name] = metrics
                except Damaged as damage:
                    if not damaged:
                        tell(f"{shown(path)}:{number}: {damage}; what it held counts as lost")
                    damaged += 1

    def scalar(self, handle: Handle) -> Value | None:
        """The stored metrics, or the number, that a planned *handle* stands for; None when there is none."""
        return self._metrics.get(handle.stored_name)

    def has_other_plans(self, handle: Handle) -> bool:
        """Whether the same was computed as a part of another plan, whose value is another one."""
        begin, end = f"{handle.node.key}-", f"-{handle.output}"
        return any(name.startswith(begin) and name.endswith(end) for name in self._metrics)

    def keep_final(self, model: Mapping[str, Handle]) -> dict[str, str]:
        """Part -> the path inside the store that the planned *model* has, if it is kept there."""
        return {part: f"tensors/{handle.stored_name}.safetensors" for part, handle in model.items()}

    def computed(self, run: str) -> Iterator[dict[str, Any]]:
        """The ledgers' rows of what was computed: first those of *run*, then those of the other runs in the store."""
        ledgers = files_in(self.folder, "ledger")
        for path in sorted(ledgers, key=lambda path: path.stem != run):
            for line in _lines(path):
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict) and row.get("event") == "computed":
                    yield row

    def missing(self, keys: Collection[str]) -> set[str]:
        """Those of the *keys* that no ledger has."""
        left = {key.encode() for key in keys}
        for path in files_in(self.folder, "ledger"):
            left -= set(_KEY.findall(read_own_file(path) or b""))
        return {key.decode() for key in left}


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file; a last one that is still being written does not count."""
    return filter(None, (read_own_file(path) or b"").split(b"\n")[:-1])
