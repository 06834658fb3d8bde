"""Where a scenario was written is for messages only: it changes neither what the scenario is nor where it can go."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from small_worlds import scenario

from fedsim.errors import Misfit, UserError
from fedsim.experiment.validate import validate
from fedsim.scenario.load import load, written_out
from fedsim.scenario.schema import Scenario

TOO_MANY = {"protocols": [{"name": "fedavg", "clients": 2}, {"name": "fedavg", "label": "all", "clients": 3}]}
MESSAGE = "3 must be at most 2, as there are no more sensors"


@pytest.fixture
def loaded(tmp_path: Path) -> Scenario:
    """A scenario whose second protocol asks too many."""
    path = tmp_path / "small.yaml"
    path.write_text(written_out(scenario(TOO_MANY)), encoding="utf-8")
    return load(path)


def refusal(of: Scenario) -> str:
    with pytest.raises(UserError) as refused:
        validate(of)
    return str(refused.value)


def test_a_scenario_is_the_same_wherever_it_was_written(loaded: Scenario) -> None:
    assert loaded == scenario(TOO_MANY)
    assert written_out(loaded) == written_out(scenario(TOO_MANY))


def test_what_does_not_fit_is_shown_where_it_was_written(loaded: Scenario, tmp_path: Path) -> None:
    lines = (tmp_path / "small.yaml").read_text(encoding="utf-8").splitlines()
    line = lines.index("  clients: 3") + 1
    assert refusal(loaded) == f"{tmp_path / 'small.yaml'}:{line}: protocols[1].clients: {MESSAGE}"


def test_one_protocol_of_several_keeps_its_place(loaded: Scenario) -> None:
    second = loaded.model_copy(update={"protocols": loaded.protocols[1:]})
    assert refusal(second) == refusal(loaded)
    added = loaded.model_copy(update={"protocols": (loaded.protocols[1].model_copy(update={"label": "new"}),)})
    assert refusal(added).endswith(f": protocols.clients: {MESSAGE}")
    without_a_file = scenario({"protocols": TOO_MANY["protocols"][1:]})
    assert refusal(without_a_file) == f"protocols[0].clients: {MESSAGE}"


def test_a_scenario_can_be_copied_and_sent_to_another_process(loaded: Scenario) -> None:
    assert copy.deepcopy(loaded) == pickle.loads(pickle.dumps(loaded)) == loaded


def test_a_misfit_keeps_its_key_when_it_is_made_again() -> None:
    # SimPy makes exceptions anew from their arguments.
    error = Misfit("links[2]: no such node", "links", 2)
    again = type(error)(*error.args)
    assert (str(again), again.key) == (str(error), error.key) == ("links[2]: no such node", ("links", 2))
