"""SPATL is the plain PyTorch loop of its equations, whoever trains and whatever is lost or late.

Without selection and control it is FedPer, with a shared predictor and no selection it is SCAFFOLD on the extractor.
The loop (``spatl_loop.py``) is written from the paper, with the corrections that its module says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import digit_runs
import numpy as np
import pytest
import torch
from asked import LATE, MISSING, asked_in, selected, with_worlds
from own_loop import BASE, OwnLoop
from plain_loop import NAMES, differences
from spatl_loop import MODELS, SpatlLoop, Weights
from tiers import FULL, mostly_long

from fedsim.experiment.gc_policy import set_aside_for_good
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.selecting import decoded
from fedsim.models.conv1d import Conv1dModel
from fedsim.models.convolutions import skeleton_of
from fedsim.models.resnet import ResNet
from fedsim.models.small_cnn import SmallCnn
from fedsim.models.table import EXTRACTOR, LayerTable
from fedsim.protocols.world import World
from fedsim.scenario.schema import Scenario

EXACT = 1e-10
ROUNDS, COHORT = 3, 6
OWN: dict[str, Any] = {"data.client_test_fraction": 0.3, "evaluate": {"on": ["own"]}}
TRAINING = {"training.learning_rate": 0.05, "training.momentum": 0.9, "training.weight_decay": 1e-3}
HALF = {"name": "uniform", "keep": 0.5}
ALL = {"name": "uniform", "keep": 1.0}
NONE = {"name": "none"}

CASES: dict[str, dict[str, Any]] = {
    "uniform": {"name": "spatl", "selection": HALF},
    "random": {"name": "spatl", "selection": {"name": "random", "keep": 0.5}},
    "l2_global": {"name": "spatl", "selection": {"name": "l2_global", "keep": 0.4}},
    "one filter of each": {"name": "spatl", "selection": {"name": "uniform", "keep": 0.01}},
    "all filters": {"name": "spatl", "selection": ALL},
    "change is sent": {"name": "spatl", "selection": HALF, "control": {"change": "sent"}},
    "count": {"name": "spatl", "selection": HALF, "server": {"denominator": "count"}},
    "count, by samples": {
        "name": "spatl",
        "selection": {"name": "random", "keep": 0.3},
        "weighting": "samples",
        "server": {"denominator": "count", "learning_rate": 0.5},
    },
    "slower, by samples": {
        "name": "spatl",
        "selection": HALF,
        "weighting": "samples",
        "server": {"learning_rate": 0.5},
    },
    "authors": {"name": "spatl", "selection": HALF, "control": {"parity": "authors"}},
    "authors, further": {"name": "spatl", "selection": HALF, "control": {"parity": "authors", "cv_scale": 0.5}},
    "authors, sent": {"name": "spatl", "selection": HALF, "control": {"parity": "authors", "change": "sent"}},
    "spatl_no_selection": {"name": "spatl_no_selection"},
    "spatl_no_control": {"name": "spatl_no_control", "selection": HALF},
    "spatl_shared_predictor": {"name": "spatl_shared_predictor", "selection": HALF},
}
NOW = ("uniform", "random", "l2_global", "count, by samples", "authors, further", "spatl_shared_predictor")
"""Those that `make test` tries, too."""
OF_ONE_MIND = ("one filter of each", "all filters", "spatl_no_selection")
"""The strongest filter of a convolution is the strongest with all clients."""


def scenario(cases: Mapping[str, Mapping[str, Any]], model: str = "small_cnn", **more: Any) -> Scenario:
    protocols = [{"clients": COHORT, **keys, "label": label} for label, keys in cases.items()]
    changes = OWN | TRAINING | {"model": MODELS[model], "protocols": protocols, "stop.rounds": ROUNDS}
    return digit_runs.scenario(changes | more)


def apart(one: Weights, other: Weights) -> float:
    """The largest difference between two models of the same tensors."""
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def scored(results: Results, label: str) -> np.ndarray:
    rounds = results.rounds[results.rounds["protocol"] == label]
    return rounds[["accuracy_mean", "accuracy_std", "accuracy_min", "accuracy_max"]].to_numpy()


def by_hand(accuracies: list[list[float]]) -> np.ndarray:
    own = np.array(accuracies)
    return np.stack([own.mean(1), own.std(1), own.min(1), own.max(1)], axis=1)


# -- against the loop --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The scenario and the results of the cases that are always tried, or of the others, when first asked for."""

    @cache
    def made(executor: str, now: bool) -> tuple[Scenario, Results]:
        whole = scenario({label: case for label, case in CASES.items() if (label in NOW) == now})
        set_aside_for_good()
        folder = tmp_path_factory.mktemp("spatl") / "run"
        return whole, run(whole, out=folder, executor=executor, workers=1, precision="float64")

    return made


@pytest.mark.parametrize(
    ("label", "executor"),
    mostly_long(product(CASES, ["serial", "batched", "processes"]), now=[(label, "batched") for label in NOW]),
)
def test_spatl_is_the_loop_of_its_equations(label: str, executor: str, learned: Any) -> None:
    whole, results = learned(executor, label in NOW)
    loop = SpatlLoop(whole, CASES[label])
    start = loop.w
    accuracies = loop.run(selected(ROUNDS, COHORT))
    assert len(loop.steps_seen) > 3
    assert (loop.disputed > 5) == (label not in OF_ONE_MIND), "clients choose different filters"
    assert all((loop.w[name] - start[name]).abs().max() > 1e-4 for name in start if name.startswith("extractor."))
    assert apart(digit_runs.weights(results, label), loop.w) < EXACT
    if label != "spatl_shared_predictor":
        assert scored(results, label) == pytest.approx(by_hand(accuracies), abs=1e-12)


NORMALISED = ["uniform", "random", "count, by samples", "slower, by samples", "authors, further"]


@pytest.mark.parametrize(
    ("label", "executor"),
    mostly_long(product(NORMALISED, ["serial", "batched"]), now=[]),
)
def test_what_normalises_a_filter_goes_along_with_it(label: str, executor: str, tmp_path: Path) -> None:
    """Scale, offset and running statistics: of a filter that nobody sends, the server's own stay."""
    rounds, cohort = 2, 3
    case = {label: CASES[label] | {"clients": cohort}}
    whole = scenario(case, "resnet", **{"stop.rounds": rounds, "evaluate": {"on": ["global"]}})
    results = run(whole, out=tmp_path, executor=executor, workers=1, precision="float64")
    loop = SpatlLoop(whole, case[label], "resnet")
    start = loop.w
    loop.run(selected(rounds, cohort), score=False)
    found = digit_runs.weights(results, label)
    assert apart(found, loop.w) < EXACT
    moved = torch.cat([found[name] != start[name] for name in loop.statistics]).double().mean().item()
    assert 0.5 < moved < 0.99, "some statistics stay, and most move"


# -- lost and late -----------------------------------------------------------------------------------------------------

MISSED = ["uniform", "random", "change is sent", "count", "authors", "spatl_shared_predictor"]


@pytest.fixture(scope="module")
def missed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Results and worlds where updates are lost and late, made when they are first asked for."""

    @cache
    def made(late_transfers: str) -> tuple[Scenario, Results, dict[str, World]]:
        cases = {label: CASES[label] | LATE for label in MISSED}
        whole = scenario(cases, **MISSING | {"network.late_transfers": late_transfers})
        set_aside_for_good()
        results, worlds = with_worlds(whole, tmp_path_factory.mktemp("missed") / "run")
        return whole, results, worlds

    return made


@pytest.mark.parametrize("label", MISSED)
@pytest.mark.parametrize("late_transfers", mostly_long(["finish", "cancel"], now=["finish"]))
def test_who_is_missing_keeps_its_control_and_its_predictor_and_counts_nowhere(
    label: str, late_transfers: str, missed: Any
) -> None:
    whole, results, worlds = missed(late_transfers)
    answers = asked_in(worlds[label])
    rounds = results.rounds[results.rounds["protocol"] == label]
    assert [sum(one.arrives for one in asked) for asked in answers] == rounds["participants"].tolist()
    assert rounds["lost"].sum() > 2 and rounds["late"].sum() > 1
    loop = SpatlLoop(whole, CASES[label])
    accuracies = loop.run(answers)
    assert loop.disputed > 5
    assert apart(digit_runs.weights(results, label), loop.w) < EXACT
    if label != "spatl_shared_predictor":
        assert scored(results, label)[-1] == pytest.approx(by_hand(accuracies)[-1], abs=1e-12)


# -- what it is without its parts --------------------------------------------------------------------------------------

FEDPER: dict[str, dict[str, Any]] = {
    "fedper": {"name": "fedper", "weighting": "uniform"},
    "none": {"name": "spatl_no_control", "selection": NONE},
    "all filters": {"name": "spatl_no_control", "selection": ALL},
    "all filters, count": {"name": "spatl_no_control", "selection": ALL, "server": {"denominator": "count"}},
}


@pytest.mark.parametrize("executor", mostly_long(["serial", "batched", "processes"], now=["serial", "batched"]))
def test_without_control_and_selection_it_is_fedper(tmp_path: Path, executor: str) -> None:
    """Bit for bit, but for rounding where filters are chosen between trainings side by side and their sum."""
    results = run(scenario(FEDPER), out=tmp_path, executor=executor, workers=1)
    fedper, scores = digit_runs.weights(results, "fedper"), scored(results, "fedper")
    for label in ("none", "all filters", "all filters, count"):
        found = digit_runs.weights(results, label)
        if label == "none" or executor != "batched":
            assert differences(found, fedper) == {}, label
        else:
            assert apart(found, fedper) < 1e-6, label
        assert (scored(results, label) == scores).all(), label


SHARED: dict[str, dict[str, Any]] = {
    label: {"name": "spatl_shared_predictor", "selection": selection, "control": {"change": change}}
    for label, selection, change in (
        ("none, sent", NONE, "sent"),
        ("all filters, sent", ALL, "sent"),
        ("none, rebuilt", NONE, "rebuilt"),
        ("all filters, rebuilt", ALL, "rebuilt"),
    )
}


def test_with_a_shared_predictor_it_is_scaffold_on_the_names_of_the_extractor(tmp_path: Path) -> None:
    more = {"training.momentum": 0.5, "training.weight_decay": 0.0}
    whole = scenario(SHARED, **more)
    results = run(whole, out=tmp_path, executor="serial", precision="float64")
    loop = SpatlLoop(whole, SHARED["none, sent"])
    assert not loop.private and all(name.startswith("extractor.") for name in loop.c)
    loop.run(selected(ROUNDS, COHORT))
    found = {label: digit_runs.weights(results, label) for label in SHARED}
    assert apart(found["none, sent"], loop.w) < EXACT
    for label in SHARED:
        assert differences(found[label], found["none, sent"]) == {}, label


def test_without_momentum_it_is_one_whether_a_gradient_is_corrected_or_the_weights_behind_it(tmp_path: Path) -> None:
    cases = {
        "paper": CASES["uniform"],
        "authors": CASES["uniform"] | {"control": {"parity": "authors", "cv_scale": 1.0}},
        "authors, scaled": CASES["uniform"] | {"control": {"parity": "authors"}},
    }
    results = run(scenario(cases, **{"training.momentum": 0.0}), out=tmp_path, executor="serial", precision="float64")
    paper, authors, scaled = (digit_runs.weights(results, label) for label in cases)
    assert apart(paper, authors) < EXACT
    assert apart(paper, scaled) > 1e-5


# -- samples that are held back ----------------------------------------------------------------------------------------

MOST = 20
ENOUGH = {"data.partition": {"name": "quantity_skew", "alpha": 2.0, "minimum_samples": 20}}


def without_what_is_held_back(data: Any) -> Any:
    """The data set as a loop reads it, with at most a fifth of each client's training samples gone."""
    left = []
    for client, own in enumerate(data.train_ids):
        number = min(MOST, len(own) // 5)
        held = Stream(1, "data/held_back", client).generator().choice(own, number, replace=False)
        left.append(own[~np.isin(own, held)])
        assert len(left[-1]) == len(own) - number
    assert len({len(own) - len(rest) for own, rest in zip(data.train_ids, left, strict=True)}) > 2, "20, and fifths"
    return SimpleNamespace(train_ids=left, client_test_ids=data.client_test_ids, test_ids=data.test_ids)


@pytest.mark.parametrize("executor", mostly_long(["serial", "batched", "processes"], now=["serial"]))
def test_nobody_trains_on_what_it_holds_back(tmp_path: Path, executor: str) -> None:
    protocols = [{"name": name, "clients": COHORT, "hold_back": MOST} for name in ("fedavg", "fedper")]
    whole = digit_runs.scenario(OWN | ENOUGH | {"training.momentum": 0.5, "protocols": protocols})
    results = run(whole, out=tmp_path, executor=executor, workers=1)
    rounds = selected(ROUNDS, COHORT)

    loop = OwnLoop(whole)
    loop.data = without_what_is_held_back(loop.data)
    base, accuracies = loop.fedper(rounds)
    found = digit_runs.weights(results, "fedper")
    for name, expected in zip(list(NAMES)[:BASE], base, strict=True):
        assert found[name] == pytest.approx(expected, abs=1e-5), name
    assert scored(results, "fedper") == pytest.approx(by_hand(accuracies), abs=1e-5)

    loop = OwnLoop(whole)
    loop.data = without_what_is_held_back(loop.data)
    expected, _ = loop.averaging(COHORT, "samples")
    assert max(differences(digit_runs.weights(results, "fedavg"), expected).values(), default=0.0) < 1e-5
    final = [loop.accuracy_of(client, loop.weights) for client in range(len(loop.data.train_ids))]
    assert scored(results, "fedavg")[-1] == pytest.approx(by_hand([final])[-1], abs=1e-5)


def test_spatl_trains_on_the_samples_that_are_left(tmp_path: Path) -> None:
    case = {"held": CASES["uniform"] | {"hold_back": MOST}}
    whole = scenario(case, **ENOUGH)
    results = run(whole, out=tmp_path, executor="serial", precision="float64")
    loop = SpatlLoop(whole, case["held"])
    loop.data = without_what_is_held_back(loop.data)
    accuracies = loop.run(selected(ROUNDS, COHORT))
    assert apart(digit_runs.weights(results, "held"), loop.w) < EXACT
    assert scored(results, "held") == pytest.approx(by_hand(accuracies), abs=1e-12)


# -- equation 12 -------------------------------------------------------------------------------------------------------

TABLES: dict[str, LayerTable] = {
    "small_cnn": SmallCnn(channels=(6, 9), hidden=11).table((1, 8, 8), 10),
    "conv1d": Conv1dModel(kernel=8, stride=4).table((2, 300), 4),
    "conv1d, by batches": Conv1dModel(kernel=8, stride=4, normalisation="batch").table((2, 300), 4),
    "resnet": ResNet(depth=20).table((1, 8, 8), 10),
    "resnet, by groups": ResNet(depth=20, normalisation="group").table((1, 8, 8), 10),
    "resnet, projected": ResNet(depth=20, shortcut="projection").table((3, 8, 8), 10),
}


def owner(name: str) -> str | None:
    """The convolution whose filters a tensor has a row of: its own, and those of the normalisation behind it."""
    stem, _, layer = name.rpartition(".")[0].rpartition(".")
    for kind in ("conv", "bn", "gn"):
        if layer.startswith(kind):
            return f"{stem}.conv{layer.removeprefix(kind)}".removeprefix(".")
    return None


@pytest.mark.drawn
@pytest.mark.parametrize("model", TABLES)
def test_the_mean_of_what_is_decoded_is_equation_12_filter_by_filter(model: str) -> None:
    table, number = TABLES[model], 100 if FULL or model == "small_cnn" else 4
    skeleton, draw = skeleton_of(table), np.random.default_rng(12)
    shapes = table.state_shapes(EXTRACTOR)
    assert {one.name for one in skeleton.convolutions} == {owner(name) for name in shapes} - {None}
    for _ in range(number):
        w_g = {name: torch.tensor(draw.standard_normal(shape), dtype=torch.float32) for name, shape in shapes.items()}
        uploads = []
        for _ in range(int(draw.integers(1, 5))):
            w_k = {
                name: w + torch.tensor(draw.standard_normal(w.shape), dtype=torch.float32) for name, w in w_g.items()
            }
            masks = {one.name: draw.random(one.filters) < draw.random() for one in skeleton.convolutions}
            uploads.append((w_k, masks))
        made = [decoded(w_k, w_g, skeleton, [*masks.values()]) for w_k, masks in uploads]
        for name, w in w_g.items():
            mean = w + sum((one[name] - w) / len(made) for one in made)
            for row in range(len(w)):
                expected = w[row].clone()
                for w_k, masks in uploads:
                    convolution = owner(name)
                    if convolution is None or masks[convolution][row]:
                        expected += (w_k[name][row] - w[row]) / len(uploads)
                assert (mean[row] - expected).abs().max() < 1e-6, (name, row)
