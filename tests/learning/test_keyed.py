"""What keys say of operations, objectives and settings: every field, however deep, and never the same of two things."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from nodes import training_of
from small_learner import data

from fedsim.learning.graph import Graph, digest_of
from fedsim.learning.keyed import described
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.operation import Operation
from fedsim.learning.operations.partial_sum import PartialSum
from fedsim.settings import Component, Settings


class Inner(Component):
    """A component of a component's own."""

    name: Literal["inner"] = "inner"
    version: ClassVar[int] = 1
    width: float = 1.0


class NewerInner(Component):
    """The same, with other numbers."""

    name: Literal["inner"] = "inner"
    version: ClassVar[int] = 2
    width: float = 1.0


class Deep(Settings):
    """Settings within settings."""

    steps: int = 3


class OfParts(Objective):
    """An objective of parts."""

    strength: float = 0.5
    inner: Inner | NewerInner = Inner()
    deep: Deep = Deep()
    several: tuple[Inner | NewerInner, ...] = (Inner(), Inner(width=2.0))
    title: str | None = None


class Outer(OfParts):
    """One of them."""

    name: Literal["outer"] = "outer"


class NewerOuter(OfParts):
    """The same, with other numbers."""

    name: Literal["outer"] = "outer"
    version: ClassVar[int] = Outer.version + 1


OUTER = Outer()


@dataclass(frozen=True)
class Share:
    """A dataclass in a field."""

    of: tuple[int, ...]
    title: str | None = None


@dataclass(frozen=True)
class Mixture(Operation):
    """An operation with fields of every kind."""

    name: ClassVar[str] = "mixture"
    rate: float = 0.1
    number: int = 2
    exact: bool = False
    title: str = "a"
    share: Share = Share((1, 2))
    weights: tuple[float, ...] = (0.5, 0.5)
    by: tuple[Share, ...] = (Share((3,)),)
    objective: Objective = OUTER


@dataclass(frozen=True)
class NewerMixture(Mixture):
    """With other numbers."""

    version: ClassVar[int] = Mixture.version + 1


@dataclass(frozen=True)
class RenamedMixture(Mixture):
    """By another name."""

    name: ClassVar[str] = "another"


CHANGED: dict[str, Callable[[], Operation]] = {
    "version": NewerMixture,
    "name": RenamedMixture,
    "number of a field": lambda: Mixture(rate=math.nextafter(0.1, 1)),
    "whole number": lambda: Mixture(number=3),
    "truth": lambda: Mixture(exact=True),
    "text": lambda: Mixture(title="b"),
    "dataclass": lambda: Mixture(share=Share((1, 3))),
    "text that was None": lambda: Mixture(share=Share((1, 2), "a")),
    "None as a text": lambda: Mixture(share=Share((1, 2), "None")),
    "list": lambda: Mixture(weights=(0.5, 0.5, 0.0)),
    "order of a list": lambda: Mixture(weights=(0.0, 0.5, 0.5)),
    "dataclass in a list": lambda: Mixture(by=(Share((4,)),)),
    "objective": lambda: Mixture(objective=Proximal(mu=0.5)),
    "version of an objective": lambda: Mixture(objective=NewerOuter()),
    "objective's field": lambda: Mixture(objective=Outer(strength=0.25)),
    "part of an objective": lambda: Mixture(objective=Outer(inner=Inner(width=3.0))),
    "version of a part of an objective": lambda: Mixture(objective=Outer(inner=NewerInner())),
    "one of several parts": lambda: Mixture(objective=Outer(several=(Inner(width=2.0), Inner()))),
    "version of one of several parts": lambda: Mixture(objective=Outer(several=(Inner(), NewerInner(width=2.0)))),
    "settings in an objective": lambda: Mixture(objective=Outer(deep=Deep(steps=4))),
}


@pytest.mark.parametrize("changed", CHANGED)
def test_every_field_and_version_however_deep_is_in_the_key(changed: str) -> None:
    graph = Graph("family")
    keys = [graph.node(make(), {}).key for make in (Mixture, Mixture, CHANGED[changed])]
    assert keys[0] == keys[1] != keys[2]


def test_no_two_of_these_have_one_key() -> None:
    graph = Graph("family")
    assert len({graph.node(make(), {}).key for make in (Mixture, *CHANGED.values())}) == 1 + len(CHANGED)


def test_a_newer_objective_differs_in_nothing_but_its_version() -> None:
    before, newer = described(Mixture()), described(Mixture(objective=NewerOuter()))
    assert newer == before | {"objective": before["objective"] | {"version": NewerOuter.version}} != before


def test_all_of_it_is_told_and_nothing_that_changes_no_number() -> None:
    told = described(PartialSum((0.25, 0.75)))
    assert told == {"name": "partial_sum", "version": 1, "weights": [0.25, 0.75]}, "roles and kinds of outputs are not"
    training = described(training_of(data(), 1, objective=Proximal(mu=0.5)))
    assert training["objective"] == {"name": "proximal", "version": 1, "mu": 0.5}
    assert training["seen"] == {
        "data": data().digest,
        "client": 1,
        "samples": 6,
        "capture": None,
        "augmentation": None,
        "drift_strength": None,
    }
    assert training.keys() == {"name", "version", "model", "training", "objective", "codec", "seen", "rows"}


def test_it_is_json_and_the_same_whenever_it_is_asked_for() -> None:
    told = described(Mixture())
    assert json.loads(json.dumps(told)) == told == described(replace(Mixture()))
    assert digest_of(told) == digest_of(dict(reversed(told.items())))


def test_equal_settings_of_different_classes_are_told_apart() -> None:
    """Whichever was asked for first."""
    told = [described(kind()) for kind in (Inner, NewerInner, Inner, NewerInner)]
    assert told[0] == told[2] != told[1] == told[3]


def test_mappings_and_lists_are_told_item_by_item() -> None:
    told = described({"a": [Share((1,)), None, 2.5, True], "b": {"c": PartialSum(())}})
    assert told == {"a": [described(Share((1,))), None, 2.5, True], "b": {"c": described(PartialSum(()))}}
    assert described(Share((1,))).items() >= {"of": [1], "title": None}.items()


@pytest.mark.parametrize(
    "thing",
    [object(), {1, 2}, b"bytes", 1j, np.arange(2), np.float32(1.0), np.int64(1), torch.zeros(2), len, lambda: 1],
    ids=lambda thing: type(thing).__name__,
)
def test_what_cannot_be_told_apart_is_in_no_key(thing: Any) -> None:
    for held in (thing, [thing], {"a": thing}, Share((1, thing))):
        with pytest.raises(TypeError, match="a key cannot hold .*: make it a number, a text, or a dataclass of them"):
            described(held)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_equals_nothing_is_in_no_key(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Graph("family").node(Mixture(rate=number), {})
