"""Law 3 on data: the same settings and seed give the same samples, owners and tests, in any process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

RUN = """
import json, sys
from small_worlds import scenario
from fedsim.scenario.build import gather_materials

for data in json.loads(sys.argv[1]):
    print(gather_materials(scenario({"data": data}), 1).dataset.digest)
"""
WORDS = ("worn", "sound", "cracked", "greasy", "dry", "loose")


def sources(folder: Path) -> list[dict[str, object]]:
    """Digits, a few glyphs, a table whose classes and clients are words, and images in folders: two clients each."""
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


@pytest.mark.slow
def test_data_sets_are_the_same_in_two_processes_whatever_the_hash_seed(tmp_path: Path) -> None:
    here = Path(__file__).parents[1]
    asked = json.dumps(sources(tmp_path))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, asked],
            env=os.environ
            | {
                "FEDSIM_CACHE": str(tmp_path / f"cache-{hash_seed}"),  # each reads the files itself
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": f"{here}{os.pathsep}{here.parent}",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    one, other = (process.communicate()[0].split() for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert one == other
    assert len(set(one)) == len(json.loads(asked))
