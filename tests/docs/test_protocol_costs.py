"""The table of what each protocol costs has a row for each of them, with the bytes of a first round on the air."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from pages import ROOT
from small_worlds import NO_TIME, simulated

from fedsim import registry
from fedsim.models.convolutions import skeleton_of
from fedsim.models.small_cnn import SmallCnn

PAGE = ROOT / "docs/protocols/README.md"
TERM = re.compile(r"(?:(?P<times>\d+) )?(?P<letter>[MPECKF])(?P<squared><sup>2</sup>)?|(?P<bytes>\d+)")
MODEL = SmallCnn().table((1, 8, 8), 10)
LETTERS = {
    "M": MODEL.bytes(),
    "P": MODEL.bytes(),
    "E": MODEL.bytes("extractor"),
    "C": MODEL.bytes("classifier"),
    "F": float(skeleton_of(MODEL).filters),
    "K": float(MODEL.activation_shapes["pool2"][0]),
}
REPORT = 40.0
"""The bytes of a client's counts of ten classes."""
NEEDED: dict[str, dict[str, Any]] = {"fedprox": {"mu": 0.1}, "cgau": {"pretraining_rounds": 1}}
EVERYTHING = {"selection": {"name": "gnn_ppo", "declared_keep": 1.0}}
NEEDED |= dict.fromkeys(("spatl", "spatl_no_control", "spatl_shared_predictor"), EVERYTHING)
WITH_BYTES = [name for name in registry.names("protocols") if name not in ("composed", "centralised")]


@cache
def rows() -> dict[str, list[str]]:
    """The cells behind each protocol's name."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| [")]
    return {row[0].partition("]")[0].removeprefix("["): row[1:] for row in cells}


def number(cell: str) -> float:
    """The bytes that *cell* says of a first round: up to the first comma or word."""
    total = 0.0
    for text in re.split(r",| in ", cell)[0].split(" + "):
        term = TERM.fullmatch(text)
        assert term is not None, cell
        if term["bytes"]:
            total += float(term["bytes"])
        else:
            total += int(term["times"] or 1) * LETTERS[term["letter"]] ** (2 if term["squared"] else 1)
    return total


def test_every_protocol_has_one_row_in_the_order_of_the_list() -> None:
    assert list(rows()) == list(registry.names("protocols"))


@pytest.mark.parametrize("name", WITH_BYTES)
def test_a_row_has_the_bytes_of_a_client_in_its_first_round(name: str) -> None:
    """There are fewer clients than groups, so that each is a group of its own; reports of classes do not count."""
    changes = {key: value for key, value in NO_TIME.items() if not key.startswith("model")} | {
        "data": {"name": "digits", "partition": {"name": "iid"}},
        "topology.devices": 2,
        "model": {"name": "small_cnn"},
        "protocols": [{"name": name, **NEEDED.get(name, {}), **({"clients": 1} if _draws(name) else {})}],
    }
    world = simulated(changes)
    hops = world.trace.hops.array()
    air = hops[hops["access"] & (hops["bytes"] != REPORT) & (hops["client"] >= 0)]  # reports together have no client
    someone = air["client"][0] if len(air) else 0
    _, down, up, *_ = rows()[name]
    for cell, uplink in ((down, False), (up, True)):
        sent = air["bytes"][(air["client"] == someone) & (air["uplink"] == uplink)].sum()
        assert sent == number(cell), cell


def _draws(name: str) -> bool:
    return "clients" in registry.load("protocols", name).model_fields
