"""A plant that is fine, and commands on what has become of it, which must be refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from said import assert_said

from fedsim.cli import main

PLANT = """\
# what a plant engineer starts from
name: plant
seeds: [1, 2]
stop: {rounds: 2}
topology: {name: star, devices: 4}
network:
  cell:
    radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}
    duplex: shared
    discipline: {name: serial}
  link: {rate_bps: 1.0e+9, delay_s: 0.001}
devices:
  classes:
    camera: {compute: {name: flops, flops_per_s: 1.0e+9}}
  cloud: {compute: {name: flops, flops_per_s: 1.0e+12}}
data: {name: digits, partition: {name: iid}}
model: {name: softmax}
training: {learning_rate: 0.1, batch_size: 8}
protocols:
  - {name: fedavg, fraction: 0.5}
  - {name: fedprox, fraction: 0.5, mu: 0.1}
"""

Files = Mapping[str, str | bytes | None]
"""Path -> content; None makes a folder."""
FEDAVG, FEDPROX = "  - {name: fedavg, fraction: 0.5}\n", "  - {name: fedprox, fraction: 0.5, mu: 0.1}\n"
DATA, MODEL = "data: {name: digits, partition: {name: iid}}", "model: {name: softmax}"


def calibrated(scc: str = "{}") -> str:
    return f"  - {{name: fedavg, fraction: 0.5, exchange: {{name: lasp, scc: {scc}}}}}\n"


def edited(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the text"
        text = text.replace(old, new)
    return text


def lay_out(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def everything_in(folder: Path) -> dict[str, bytes | None]:
    return {str(path): None if path.is_dir() else path.read_bytes() for path in sorted(folder.rglob("*"))}


class Refusals:
    """Commands that must be refused, executed in a folder of their own."""

    def __init__(self, folder: Path, output: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._output = output

    def check(self, *words: str, message: str, begins: str = "fedsim: ") -> None:
        """The command is refused with this message, and leaves the folder as it was."""
        before = everything_in(self.folder)
        self._output.readouterr()
        status = main(words)
        said = self._output.readouterr()
        assert_said(f"{begins}{message}\n", said.err)
        assert (status, said.out) == (2, "")
        assert everything_in(self.folder) == before
