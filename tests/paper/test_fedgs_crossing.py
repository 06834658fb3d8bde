"""FedGS's Proposition 4 as an experiment: docs/pictures/fedgs_crossing.py finds by simulation up to which T it holds.

(Li et al., IEEE Internet of Things Journal 2022, section VI-B.) With M stations and L devices each, the bound is
T* = (B_e / B_c) M (L - 1) / L.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from tiers import mostly_long

DOCS = Path(__file__).parents[2] / "docs"
M = L = 10
RATIOS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@cache
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("fedgs_crossing", DOCS / "pictures/fedgs_crossing.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written() -> pd.DataFrame:
    return pd.read_csv(DOCS / "claims/fedgs_crossing.csv", dtype=str)


@pytest.mark.parametrize("ratio", mostly_long(RATIOS, now=RATIOS[:2]))
def test_the_table_is_what_the_simulation_gives(ratio: float) -> None:
    (row,) = written()[written()["B_e / B_c"] == f"{ratio:g}"].to_dict("records")
    (simulated,) = script().crossings([ratio]).to_dict("records")
    assert row == simulated, "python docs/pictures/fedgs_crossing.py writes it anew"


def test_the_table_has_a_row_for_each_ratio() -> None:
    assert tuple(written()["B_e / B_c"].astype(float)) == RATIOS == script().RATIOS


def test_under_the_papers_assumption_the_crossing_is_that_of_proposition_4() -> None:
    for row in written().to_dict("records"):
        bound = float(row["B_e / B_c"]) * M * (L - 1) / L
        assert float(row["Proposition 4"]) == pytest.approx(bound, abs=0.005)
        assert float(row["FedAvg's air is free"]) == pytest.approx(bound, rel=0.02)
        assert float(row["free air - Proposition 4, %"]) < 2


def test_where_fedavg_crosses_the_air_too_it_is_another_one() -> None:
    """Fair: an internal synchronisation more for FedAvg. Serial: both directions at once, in every cell and wire.

    FedAvg then takes (M L + 1) s / B_c + 2 s / B_e, and FedGS T (L + 1) s / B_e + (M + 1) s / B_c.
    """
    for row in written().to_dict("records"):
        ratio = float(row["B_e / B_c"])
        assert float(row["both cross the air, fair"]) == pytest.approx(ratio * M * (L - 1) / L + 1, abs=0.005)
        serial = (ratio * M * (L - 1) + 2) / (L + 1)
        assert float(row["both cross the air, serial"]) == pytest.approx(serial, abs=0.006)
