"""What an objective sees of a mini-batch: scores and features of its model and of frozen ones; and FedMMD's term."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from nodes import slots, training_of
from small_learner import CLASSES, SHAPE, data

from fedsim.errors import UserError
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.view import View
from fedsim.learning.executors.wave import Training, Wave
from fedsim.learning.objectives.mmd import WIDTHS, Mmd, squared_mmd
from fedsim.learning.objectives.objective import Objective
from fedsim.models.features import check_that_features_are_learned
from fedsim.models.gru import GruModel
from fedsim.models.layers import Dropout, Flatten, Linear
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.mlp import Mlp
from fedsim.models.parted import PartedModule
from fedsim.models.softmax import Softmax
from fedsim.models.table import LayerTable, ModelTable
from fedsim.models.torch_module import build, initial_parameters
from fedsim.models.user_module import TorchModule

# -- the term ---------------------------------------------------------------------------------------------------------

ROWS = np.array([[0.3, -1.2], [2.0, 0.1], [0.25, -1.0]]), np.array([[0.31, -1.2], [5.0, 5.0], [-0.5, 0.7]])


def by_hand(one: np.ndarray, other: np.ndarray) -> float:
    """Loop after loop."""

    def mean_kernel(left: np.ndarray, right: np.ndarray) -> float:
        total = 0.0
        for a in left:
            for b in right:
                distance = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
                total += sum(math.exp(-distance / (2 * width)) for width in WIDTHS)
        return total / (len(left) * len(right))

    return mean_kernel(one, one) + mean_kernel(other, other) - 2 * mean_kernel(one, other)


def term(own: torch.Tensor, others: torch.Tensor, **keys: float) -> torch.Tensor:
    found: torch.Tensor = Mmd(**keys).feature_loss(own, {"global": others})
    return found


def test_it_is_the_discrepancy_of_three_rows_by_hand() -> None:
    told, own = map(torch.from_numpy, ROWS)
    expected = by_hand(*ROWS)
    assert expected > 1, "these are far from each other"
    assert squared_mmd(told, own).item() == pytest.approx(expected, rel=1e-8)
    assert term(own, told).item() == pytest.approx(0.1 * expected, rel=1e-8)
    assert term(own, told, coefficient=2.0).item() == pytest.approx(2 * expected, rel=1e-8)


def test_there_are_19_gaussians() -> None:
    assert len(set(WIDTHS)) == 19
    far = torch.full((1, 1), 1e9, dtype=torch.float64)
    assert squared_mmd(far, torch.zeros_like(far)).item() == 2 * 19, "each kernel is 1 with itself and 0 with the other"


def test_it_is_zero_for_equal_features_and_never_below_its_floor() -> None:
    told, own = map(torch.from_numpy, ROWS)
    assert term(told, told.clone()).item() == 0.0
    assert term(told, told.clone(), floor=1e-4).item() == 1e-5
    assert term(own, told, floor=1e-4).item() == term(own, told).item()


def test_features_of_any_shape_are_compared_as_vectors_and_one_sample_is_enough() -> None:
    told, own = (torch.from_numpy(rows) for rows in ROWS)
    assert torch.equal(term(own.reshape(3, 2, 1), told.reshape(3, 1, 2)), term(own, told))
    assert term(own[:1], told[:1]).item() == pytest.approx(0.1 * by_hand(ROWS[1][:1], ROWS[0][:1]), rel=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_its_gradient_is_finite_and_vanishes_where_the_features_are_equal(dtype: torch.dtype) -> None:
    own = torch.tensor(ROWS[1], dtype=dtype, requires_grad=True)
    term(own, own.detach().clone()).backward()
    assert own.grad is not None
    assert own.grad.isfinite().all()
    assert own.grad.abs().max() < 1e-6
    own.grad = None
    term(own, torch.tensor(ROWS[0], dtype=dtype)).backward()
    assert own.grad.isfinite().all()
    assert own.grad.abs().max() > 1e-3


# -- what is seen -----------------------------------------------------------------------------------------------------


class Both(Objective):
    """Notes what it sees, and asks for everything there is to see."""

    name: Literal["both"] = "both"
    receives: ClassVar[tuple[str, ...]] = ("first", "unseen", "second")
    scores: ClassVar[tuple[str, ...]] = ("second",)
    features: ClassVar[tuple[str, ...]] = ("first", "second")
    seen: ClassVar[dict[str, Any]] = {}

    def loss(self, scores: Any, others: Mapping[str, Any]) -> Any:
        self.seen.update(scores=scores, other_scores=others)
        return scores.sum()

    def feature_loss(self, features: Any, others: Mapping[str, Any]) -> Any:
        self.seen.update(features=features, other_features=others)
        return features.sum()


def started(table: ModelTable, seed: int) -> PartedModule:
    made = build(table)
    for part, tensors in initial_parameters(table, np.random.default_rng(seed)).items():
        made.load(part, tensors)
    return made.eval()


OWN_NET = f"{Path(__file__).parents[1] / 'models/own_net.py'}:Net"
TABLES: dict[str, tuple[ModelTable, str]] = {
    "mlp": (Mlp(hidden=(7, 5)).table((1, 28, 28), 10), "parts.classifier.fc3"),
    "leaf_cnn": (LeafCnn().table((1, 28, 28), 10), "parts.classifier.fc3"),
}


@pytest.mark.parametrize("on_rows", [False, True])
@pytest.mark.parametrize("name", [*TABLES, "own"])
def test_features_are_what_the_last_layer_takes_in_the_same_pass(name: str, on_rows: bool) -> None:
    table, last = TABLES.get(name) or (TorchModule(path=OWN_NET).table((1, 28, 28), 10), "user.head")
    local, first, second = (started(table, seed) for seed in (1, 2, 3))
    x = torch.from_numpy(np.random.default_rng(4).random((3, 1, 28, 28), dtype=np.float32))
    if on_rows:
        x = local.features(x).detach()
    view = View(Both(), local, lambda role: {"first": first, "second": second}[role], on_rows=on_rows)
    scores, looks = view.of(x)
    terms = view.terms(scores, looks)
    seen, others = Both.seen, Both.seen["other_features"].values()
    forward = {made: made.classify if on_rows else made for made in (local, first, second)}
    for made, features in ((local, seen["features"]), *zip((first, second), others, strict=True)):
        assert torch.equal(made.get_submodule(last)(features), forward[made](x))
    assert torch.equal(scores, local.get_submodule(last)(seen["features"]))
    assert torch.equal(seen["other_scores"]["second"], forward[second](x))
    assert list(seen["other_features"]) == ["first", "second"]
    assert len(terms) == 2
    sum(terms).backward()
    assert all(parameter.grad is None for made in (first, second) for parameter in made.parameters())
    assert not any(made.last._forward_pre_hooks for made in (local, first, second)), "nobody looks any more"


class Noting(Mmd):
    """Notes what the features of one batch are."""

    name: Literal["noting"] = "noting"  # type: ignore[assignment]
    seen: ClassVar[dict[str, torch.Tensor]] = {}

    def feature_loss(self, features: Any, others: Mapping[str, Any]) -> Any:
        self.seen.update(own=features.detach(), other=others["global"])
        return 0.0 * features.sum()


def test_the_other_model_is_as_in_tests_while_its_own_is_trained() -> None:
    """Half of the features are left out of the one, and none out of the other, which is the same at its start."""
    dropping = LayerTable(
        input_shape=SHAPE,
        extractor=(Flatten("flatten"), Linear("fc1", 4, 400), Dropout("dropout", 0.5)),
        classifier=(Linear("fc2", 400, CLASSES),),
    )
    dataset, model = data(), initial_parameters(dropping, np.random.default_rng(1))
    about = training_of(dataset, 0, {"learning_rate": 0.1, "batch_size": 100}, Noting(), model=dropping.digest)
    inputs = slots(model={"extractor": 0, "classifier": 1}, **{"global": {"extractor": 0, "classifier": 1}})
    training = Training(about, Stream(1, "batches", 0, 0), inputs, ("extractor", "classifier"))
    PlainTrainer(dropping, dataset, "cpu", "float32").train(Wave((training,)), list(model.values()))
    own, other = Noting.seen["own"], Noting.seen["other"]
    assert not (other == 0).any()
    assert 0.4 < (own == 0).float().mean() < 0.6
    kept = own != 0
    torch.testing.assert_close(own[kept], 2 * other[kept])


def test_features_that_nothing_changes_are_refused() -> None:
    for table in (Mlp().table((4,), 2), GruModel().table((14, 30), 4)):
        check_that_features_are_learned(table)
    with pytest.raises(UserError, match="features are compared, and the model's only layer takes the samples themselv"):
        check_that_features_are_learned(Softmax().table((4,), 2))
