"""Law 3 in any process: the same scenario and seed give the same data, traces and models, whatever Python's hash seed.

A process with another hash seed than this one does everything that is compared here, so that Python, its libraries and
ours are loaded once more and not for each law.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
from PIL import Image
from test_determinism import HALF_DUPLEX, IN_GROUPS, SCENARIO
from under_a_hash_seed import answer

NETWORKS = {"parallel": SCENARIO, "half-duplex": HALF_DUPLEX, "in groups": IN_GROUPS}
WORDS = ("worn", "sound", "cracked", "greasy", "dry", "loose")


def sources(folder: Path) -> list[dict[str, object]]:
    """Digits, some glyphs and bearings, a table with words for classes and clients, and images: two clients each."""
    rows = [f"{number}.5,{WORDS[number % 6]},{WORDS[number % 5]}" for number in range(60)]
    (folder / "table.csv").write_text("\n".join(["speed,state,machine", *rows]), encoding="utf-8")
    for line in WORDS[:3]:
        for kind in WORDS[3:]:
            (folder / "images" / line / kind).mkdir(parents=True)
            for number in range(5):
                image = np.full((4, 6), 20 * len(line) + number, np.uint8)
                Image.fromarray(image).save(folder / "images" / line / kind / f"{number}.png")
    return [
        {"name": "digits", "partition": {"name": "factory_preference"}, "feature_skew": {"name": "noise"}},
        {"name": "digits", "partition": {"name": "dirichlet"}, "unseen_clients": 3, "client_test_fraction": 0.1},
        {"name": "glyphs", "images_per_device": 20, "unseen_clients": 1},
        {"name": "bearings", "windows_per_machine": 20, "window": 256, "unseen_clients": 1},
        {
            "name": "csv",
            "path": str(folder / "table.csv"),
            "target": "state",
            "client": "machine",
            "features": ["speed"],
        },
        {"name": "csv", "path": str(folder / "table.csv"), "target": "machine", "features": ["speed"]},
        {"name": "images", "path": str(folder / "images"), "unseen_clients": 1},
    ]


def learning() -> dict[str, Any]:
    """A run that trains."""
    protocols = [{"name": "fedavg", "clients": 9}, {"name": "centralised"}]
    changes: dict[str, Any] = {"protocols": protocols, "evaluate.on": ["global", "clients"]}
    return digit_runs.data(changes | {"data.client_test_fraction": 0.2})


@dataclass
class Found:
    """What came of one process."""

    out: Path
    traces: dict[str, list[str]]
    digests: list[str]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    """By this process, and by one with another hash seed; each reads the files of data itself."""
    here, folder = Path(__file__).parents[1], tmp_path_factory.mktemp("hash_seeds")
    asked = {"networks": NETWORKS, "data": sources(folder), "learning": learning()}
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "4242" else "4242"
    environment = {
        "FEDSIM_CACHE": str(folder / "cache"),
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": f"{here}{os.pathsep}{here.parent}",
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("under_a_hash_seed.py")), str(folder / "there")],
        env=os.environ | environment,
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDSIM_CACHE", str(folder / "cache of ours"))
        ours = answer(asked, folder / "here")
    return [Found(folder / "there", **json.loads(done.stdout)), Found(folder / "here", **ours)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_the_trace_is_the_same_in_two_processes_whatever_the_hash_seed(found: list[Found], name: str) -> None:
    scenario = NETWORKS[name]
    one, other = (each.traces[name] for each in found)
    assert one == other
    assert len(set(one)) == len(scenario["protocols"]) * 2  # they do not agree by being empty
    tables = [(each.out / name / "rounds.csv").read_bytes() for each in found]
    assert tables[0] == tables[1]


@pytest.mark.slow
def test_data_sets_are_the_same_in_two_processes_whatever_the_hash_seed(found: list[Found]) -> None:
    one, other = (each.digests for each in found)
    assert one == other
    assert len(set(one)) == 7


@pytest.mark.slow
def test_results_do_not_depend_on_the_seed_of_pythons_hashes(found: list[Found]) -> None:
    one, other = (digit_runs.outcome(each.out / "learning") for each in found)
    assert one == other
    assert len(one) == 2 + 2 * 3  # rounds and counts; of two protocols the trace and two parts
