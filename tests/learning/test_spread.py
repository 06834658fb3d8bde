"""How well one model serves each of many clients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.learning.spread import spread

SCORES = st.lists(
    st.fixed_dictionaries({"accuracy": st.floats(0, 1), "loss": st.floats(0, 100), "samples": st.integers(1, 1000)}),
    min_size=1,
    max_size=30,
)


@given(SCORES)
def test_totals_weigh_by_samples_and_the_spread_counts_each_client_once(scores: list[dict[str, float]]) -> None:
    found = spread(scores)
    accuracies = np.array([score["accuracy"] for score in scores])
    samples = np.array([score["samples"] for score in scores])
    losses = np.array([score["loss"] for score in scores])
    assert found["samples"] == samples.sum()
    assert found["accuracy"] == pytest.approx(np.average(accuracies, weights=samples), abs=1e-12)
    assert found["loss"] == pytest.approx(np.average(losses, weights=samples), abs=1e-10)
    assert found["accuracy_std"] == pytest.approx(accuracies.std(), abs=1e-9)
    assert (found["accuracy_min"], found["accuracy_max"]) == (accuracies.min(), accuracies.max())


@given(SCORES, st.randoms())
def test_the_order_of_clients_does_not_matter(scores: list[dict[str, float]], random: np.random.Generator) -> None:
    mixed = list(scores)
    random.shuffle(mixed)
    assert spread(mixed) == spread(scores)


@pytest.mark.parametrize("name", ["accuracy", "rmse"])
def test_a_model_that_diverged_for_one_client_did_for_all(name: str) -> None:
    none = None if name == "accuracy" else np.inf
    found = spread([{name: 0.5, "loss": 1.0, "samples": 3}, {name: none, "loss": np.inf, "samples": 1}])
    spreads = {f"{name}_{how}": None for how in ("std", "min", "max")}
    assert found == {name: none, "loss": np.inf, "samples": 4, **spreads}
