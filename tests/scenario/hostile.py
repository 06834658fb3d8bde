"""A scenario that is fine, and what must come of a broken or hostile one: one message, exit status 2, and nothing else.

Nothing is written, and no more than a few seconds and a few hundred megabytes are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from limits import limited
from said import assert_said

from fedsim.cli import main

PLANT = """\
# what a plant engineer starts from
name: plant
seeds: [1, 2]
learn: true
stop: {rounds: 2}
topology: {name: star, devices: 4}
network:
  cell:
    radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}
  link: {rate_bps: 1.0e+9, delay_s: 0.001}
devices:
  classes:
    camera: {compute: {name: flops, flops_per_s: 1.0e+9}}
model: {name: softmax}
training: {learning_rate: 0.1, batch_size: 8}
protocols:
  - {name: fedavg, fraction: 0.5}
  - {name: fedprox, fraction: 0.5, mu: 0.1}
"""


def but(old: str, new: str) -> str:
    assert PLANT.count(old) == 1, f"{old!r} stands {PLANT.count(old)} times in the scenario"
    return PLANT.replace(old, new)


Content = str | bytes | Callable[[Path], None]

CHECK = ["validate", "plant.yaml"]


def everything_in(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {str(path): path.lstat() for path in sorted(folder.rglob("*"))}
    return {path: (status.st_mode, status.st_size, status.st_mtime_ns) for path, status in found.items()}


class Refusals:
    """Commands that must be refused, executed in a folder of their own."""

    def __init__(self, folder: Path, output: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._output = output

    def check(self, content: Content, words: Sequence[str], message: str) -> None:
        """The command is refused with this message where the scenario has this *content*, and leaves all as it was."""
        path = self.folder / "plant.yaml"
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        before = everything_in(self.folder)
        with limited():
            status = main(words)
        said = self._output.readouterr()
        begins = "" if message.startswith("usage: ") else "fedsim: "  # argparse says the former
        assert_said(f"{begins}{message}\n", said.err)
        assert len(said.err) < 8_000 and said.err.replace("\n", "").isprintable()
        assert (status, said.out) == (2, "")
        assert everything_in(self.folder) == before
