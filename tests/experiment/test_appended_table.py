"""A table that is laid aside until its turn comes leaves the same bytes as one that came in its turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedsim.experiment.appended_table import AppendedTable


def table(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.Generator(np.random.Philox(seed))
    names = pd.Categorical.from_codes(generator.integers(0, 3, rows), pd.Index(["cloud", "cell", "edge"]))
    return pd.DataFrame({"seed": seed, "link": names, "start_s": generator.random(rows)})


def written(folder: Path, order: Sequence[int], rows: Sequence[int]) -> bytes:
    folder.mkdir()
    path = folder / "transfers.parquet"
    made = AppendedTable(path, folder)
    for position in order:
        made.take(position, table(rows[position], position))
    assert not path.exists()
    made.close(keep=True)
    assert [inside.name for inside in folder.iterdir()] == ["transfers.parquet"]
    return path.read_bytes()


@pytest.mark.parametrize("rows", [(3, 2, 4), (10, 150_001, 70_000)], ids=["few", "many"])
def test_the_order_in_which_tables_come_changes_no_byte(tmp_path: Path, rows: Sequence[int]) -> None:
    in_turn = written(tmp_path / "in turn", (0, 1, 2), rows)
    for order in ((2, 1, 0), (1, 0, 2), (0, 2, 1)):
        assert written(tmp_path / str(order), order, rows) == in_turn


def test_the_file_may_grow_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    made = AppendedTable(tmp_path / "t.parquet", tmp_path / "scratch")
    made.take(1, table(5, 1))
    made.take(0, table(4, 0))
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]
    made.close(keep=True)
    assert len(pd.read_parquet(tmp_path / "t.parquet")) == 9


def test_what_is_not_kept_leaves_no_table(tmp_path: Path) -> None:
    made = AppendedTable(tmp_path / "t.parquet", tmp_path)
    made.take(0, table(4, 0))
    made.close(keep=False)
    assert not (tmp_path / "t.parquet").exists()
