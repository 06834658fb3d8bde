"""Which formats of graph files are read, and by what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fedsim.errors import UserError
from fedsim.topology.files.drawn import Drawn
from fedsim.topology.files.graphml import read_graphml
from fedsim.topology.files.json_graphs import read_json

__all__ = ["check_suffix", "read_drawn"]

READERS: dict[str, Callable[[str, str], Drawn]] = {".json": read_json, ".graphml": read_graphml}


def check_suffix(path: Path) -> None:
    """Raises `UserError` unless the end of the file's name is that of a known format."""
    if path.suffix.lower() not in READERS:
        raise UserError(f"{_shown(path)}: a graph file must end in {' or '.join(READERS)}; rename or convert it")


def read_drawn(path: Path, text: str) -> Drawn:
    """The graph in *text*, the content of the file *path*. Raises `UserError` when it is none."""
    check_suffix(path)
    return READERS[path.suffix.lower()](_shown(path), text)


def _shown(path: Path) -> str:
    return str(path) if str(path).isprintable() else repr(str(path))[1:-1]
