"""A server rule in protocols with groups and parts: it steps what a round has exchanged, and remembers by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import digit_runs
import pytest
import torch
from group_loop import GroupLoop
from plain_loop import Weights

from fedsim.experiment.run import run
from fedsim.learning.learner import Model
from fedsim.learning.rules.adaptive import Adam
from fedsim.learning.rules.rule import State

ADAM = {"name": "adam", "learning_rate": 0.02, "beta2": 0.95}
TAU = 1e-3
ROUNDED = 1e-5
GROUPS = {"growth": {"name": "constant", "beta": 5}, "sampling_rate": 0.6}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "stp": {"name": "stp", **GROUPS, "grouping": {"name": "random", "once": False}, "weighting": "samples"},
    "hfedms_d": {"name": "hfedms_d", **GROUPS, "interval": 3, "scc": {"capacity": 30}},
}
PARTS = ("extractor", "classifier")


@dataclass
class LoopWithAdam(GroupLoop):
    """The plain loop whose server takes the mean change for a gradient (Reddi et al., ICLR 2021, algorithm 2)."""

    m: dict[int, torch.Tensor] = field(default_factory=dict)
    v: dict[int, torch.Tensor] = field(default_factory=dict)

    def mean(
        self, base: Weights, models: Sequence[Weights], shares: Sequence[float], samples: Sequence[int] | None = None
    ) -> Weights:
        places = range(4) if len(base) == 4 else range(2, 4)  # a round of the classifier has no other tensors
        made = []
        for place, start, *ends in zip(places, base, *models, strict=True):
            change = sum(share * (end - start) for share, end in zip(shares, ends, strict=True))
            self.m[place] = 0.9 * self.m.get(place, torch.zeros_like(start)) + 0.1 * change
            before = self.v.get(place, torch.full_like(start, TAU**2))
            self.v[place] = ADAM["beta2"] * before + (1 - ADAM["beta2"]) * change**2
            made.append(start + ADAM["learning_rate"] * self.m[place] / (self.v[place].sqrt() + TAU))
        return made


class Applied(NamedTuple):
    """One use of the rule: what the server had before it and has after it, by name and part."""

    round_number: int
    parts: tuple[str, ...]
    before: dict[tuple[str, str], dict[str, torch.Tensor]]
    after: dict[tuple[str, str], dict[str, torch.Tensor]]


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[Applied]:
    """All uses of Adam in a run."""
    noted, apply = [], Adam.apply

    def values(learner: Any, state: State) -> dict[tuple[str, str], dict[str, torch.Tensor]]:
        return {(name, part): read(learner, model)[part] for name, model in state.items() for part in model}

    def read(learner: Any, model: Model) -> dict[str, dict[str, torch.Tensor]]:
        for handle in model.values():
            learner._forcer.force(handle)
        return {part: {name: one.clone() for name, one in handle.value.items()} for part, handle in model.items()}

    def watched(self: Adam, learner: Any, state: State, updates: Any, at: Any) -> State:
        after = apply(self, learner, state, updates, at)
        parts = tuple(updates[0].model)
        noted.append(Applied(at.round_number, parts, values(learner, state), values(learner, after)))
        return after

    monkeypatch.setattr(Adam, "apply", watched)
    return noted


@pytest.mark.parametrize("name", PROTOCOLS)
def test_adam_steps_the_parts_of_a_round_and_remembers_by_part(
    name: str, tmp_path: Path, applied: list[Applied]
) -> None:
    protocol = PROTOCOLS[name] | {"server": ADAM}
    changes = {"protocols": [protocol], "stop.rounds": 4, "data.stream": {"samples": 20}}
    scenario = digit_runs.scenario(changes | {"training.learning_rate": 0.2})
    found = digit_runs.weights(run(scenario, out=tmp_path, executor="serial"), name)
    loop = LoopWithAdam(scenario, protocol=protocol)
    loop.layer_wise() if name == "hfedms_d" else loop.sequential_to_parallel()
    expected = loop.named()
    for tensor in expected:
        torch.testing.assert_close(found[tensor], expected[tensor], rtol=0.0, atol=ROUNDED)

    calibrations = (2, 3) if name == "hfedms_d" else ()
    assert [use.round_number for use in applied] == [1, 2, 3, 4]
    for use in applied:
        assert set(use.parts) == ({"classifier"} if use.round_number in calibrations else set(PARTS))
        assert use.after.keys() == {(kept, part) for kept in ("model", "first", "second") for part in PARTS}
        for (kept, part), tensors in use.before.items():
            same = [torch.equal(one, use.after[kept, part][name]) for name, one in tensors.items()]
            assert all(same) if part not in use.parts else not any(same), (use.round_number, kept, part)
