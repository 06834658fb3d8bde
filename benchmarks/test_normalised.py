"""Rounds of models with group normalisation: what trains them by default, one process, and a tuned PyTorch loop."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.normalised import CLIENTS, MODELS, ROWS, SAMPLES, WARM_UP, rounds_of

TIMES = 10


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("model", MODELS)
def test_group_normalisation(benchmark: BenchmarkFixture, model: str, row: str) -> None:
    benchmark.group = f"{model} with group normalisation: a round of {CLIENTS} clients with {SAMPLES} samples each"
    with rounds_of(row, model, WARM_UP + TIMES) as another:
        benchmark.pedantic(another, rounds=TIMES, warmup_rounds=WARM_UP)
