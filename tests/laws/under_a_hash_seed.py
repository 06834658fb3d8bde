"""What must not depend on the seed of Python's hashes: done in a process of tests, and in one that has another seed.

``python under_a_hash_seed.py FOLDER``: reads what is asked for from its standard input, and answers on the other one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from small_worlds import scenario

from fedsim.experiment.run import run
from fedsim.scenario.build import gather_materials
from fedsim.scenario.schema import Scenario

__all__ = ["answer"]


def answer(asked: dict[str, Any], out: Path) -> dict[str, Any]:
    """Traces of networks and digests of data; and what a run that trains has learned, in the folder ``learning``."""
    traces = {}
    with_torch = "torch" in sys.modules
    for name, changes in asked["networks"].items():
        rows = run(scenario(changes), out=out / name).manifest["runs"]
        traces[name] = [row["trace_hash"] for row in rows]
    assert with_torch or "torch" not in sys.modules, "a network study loaded torch"
    digests = [gather_materials(scenario({"data": data}), 1).dataset.digest for data in asked["data"]]
    run(Scenario.model_validate(asked["learning"]), out=out / "learning", executor="batched", workers=1)
    return {"traces": traces, "digests": digests}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(answer(json.loads(sys.stdin.read()), Path(sys.argv[1]))))
