"""The candidates: each is one protocol at one point of what is varied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fedsim.errors import UserError
from fedsim.experiment.advise.command import spelt
from fedsim.experiment.advise.question import Question
from fedsim.experiment.sweep.points import key_of, without_sweep
from fedsim.experiment.sweep.variation import Row, Variation
from fedsim.experiment.varied_keys import short_keys
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.load import Varied, load_varied
from fedsim.scenario.overrides import segments_of
from fedsim.scenario.scalars import message_line, printable
from fedsim.scenario.schema import Scenario

__all__ = ["Candidate", "candidates_of"]

_SEARCHED: Final = {"stop": "--within and --target say when a run ends", "seeds": "give --seeds"}
"""Keys that the search itself sets, and what to do instead."""


@dataclass(frozen=True)
class Candidate:
    """A protocol at a point."""

    key: str
    """A hash of its scenario, but for its seeds and its end."""
    protocol: str
    """Its title."""
    values: tuple[Varied, ...]
    """Of the varied keys."""
    concerned: tuple[bool, ...]
    """Whether each of these changes it: ``protocols.fedprox.mu`` does not change any other protocol."""
    said: str
    """What it is called in sentences."""
    only: Varied
    """The key ``protocols`` with this protocol alone."""
    own_stop: str | None
    """The key of an end of its own that the scenario has for it, which the budgets take the place of."""
    foreseen: bool
    """Whether its times and traffic are known before anything is trained."""
    every: int
    """Rounds from one evaluation to the next."""


def candidates_of(
    path: Path, overrides: Sequence[str], variation: Variation | None, question: Question
) -> list[Candidate]:
    """All candidates, in the order of the points, each once: a point that does not change a protocol adds none.

    Raises `UserError` when a point is no scenario, and for keys that the search sets itself.
    """
    keys = [(variation.option, key) for key in variation.keys] if variation else []
    for option, key in keys:
        if (first := segments_of(key)[0]) in _SEARCHED:
            raise UserError(message_line(f"{option} {key}: {_SEARCHED[first]}"))
    rows: Iterable[Row] = variation.rows if variation else [()]
    points = [variation.point(row) if variation else [] for row in rows]
    stop = Varied("stop", {**question.stop, "target_accuracy": question.target}, f"--target {question.target:g}")
    found: dict[str, list[tuple[Scenario, int, list[Varied]]]] = {}
    scenarios = load_varied(path, [[*point, stop] for point in points], overrides=overrides)
    for point, scenario in zip(points, scenarios, strict=True):
        _check(scenario)
        for position, protocol in enumerate(scenario.protocols):
            alone = scenario.model_copy(update={"protocols": (_endless(protocol),)})
            found.setdefault(key_of(without_sweep(alone)), []).append((scenario, position, point))
    return [_candidate(key, same, variation) for key, same in found.items()]


def _candidate(key: str, same: Sequence[tuple[Scenario, int, list[Varied]]], variation: Variation | None) -> Candidate:
    """The candidate of several points that are the *same* for it."""
    scenario, position, point = same[0]
    protocol = scenario.protocols[position]
    written = [[spelt(value.value) for value in other] for *_, other in same]
    concerned = tuple(len(set(values)) == 1 for values in zip(*written, strict=True))
    names = short_keys(variation.keys) if variation else []
    values = [f"{name}={spelt(value.value)}" for name, value, does in zip(names, point, concerned, strict=True) if does]
    return Candidate(
        key=key,
        protocol=protocol.title,
        values=tuple(point),
        concerned=concerned,
        said=printable(f"{protocol.title} with {', '.join(values)}" if values else protocol.title),
        only=Varied("protocols", [_endless(protocol).model_dump(mode="json")], "the search"),
        own_stop=None if protocol.stop is None else f"protocols.{position}.stop",
        foreseen=not protocol.needs_learning,
        every=scenario.evaluate.every,
    )


def _endless(protocol: Protocol) -> Protocol:
    """The same without an end of its own."""
    return protocol.model_copy(update={"stop": None})


def _check(scenario: Scenario) -> None:
    """Raise `UserError` for what a search cannot have."""
    with scenario.about("learn"):
        if not scenario.learn:
            raise UserError("false, and an accuracy is only reached by training; leave it out")
    with scenario.about("newcomers"):
        if scenario.newcomers is not None:
            raise UserError("come when a run is over, and a search leaves most runs before; leave them out")
