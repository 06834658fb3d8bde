"""Where a scenario was written is for messages only: it changes neither what the scenario is nor where it can go.

And what a run folder keeps of it is read back.
"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_worlds import scenario

from fedsim.errors import Misfit, UserError
from fedsim.experiment.run import run
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


@pytest.mark.parametrize(("profile", "usual"), [("lte_m_m1", "fair"), ("lte_m_m2_hfedms", "serial")])
def test_a_default_that_the_radio_decides_is_written_out_and_so_is_todays_word(profile: str, usual: str) -> None:
    radio = {"name": "fixed", "profile": profile}
    of = scenario({"network.cell": {"radio": radio, "duplex": "half"}, "network.cells": {"station": {"radio": radio}}})
    written = yaml.safe_load(written_out(of))["network"]
    assert (written["cell"]["duplex"], written["cells"]["station"]["duplex"]) == ("shared", "full")
    for cell in (written["cell"], written["cells"]["station"]):
        assert cell["discipline"]["name"] == usual
        assert cell["carriers"] == 1


def test_a_scenario_can_be_copied_and_sent_to_another_process(loaded: Scenario) -> None:
    assert copy.deepcopy(loaded) == pickle.loads(pickle.dumps(loaded)) == loaded


def test_a_misfit_keeps_its_key_when_it_is_made_again() -> None:
    # SimPy makes exceptions anew from their arguments.
    error = Misfit("links[2]: no such node", "links", 2)
    again = type(error)(*error.args)
    assert (str(again), again.key) == (str(error), error.key) == ("links[2]: no such node", ("links", 2))


# -- kept in a run folder ---------------------------------------------------------------------------------------------


def one_by_one(sensors: int) -> dict[str, Any]:
    """A network in which every sensor has an entry of its own."""
    nodes: dict[str, dict[str, Any]] = {"cloud": {"kind": "cloud"}, "mast": {"kind": "base_station"}}
    for number in range(sensors):
        place_m = [number / 7, number / 11]
        nodes[f"camera-{number:06}"] = {"kind": "sensor", "position_m": place_m, "attach": "mast"}
    return {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "mast"]}]}


def test_a_node_is_a_line_of_what_it_has() -> None:
    text = written_out(scenario({"topology": one_by_one(2)}))
    assert "\n    camera-000000: {kind: sensor, position_m: [0.0, 0.0], attach: mast}\n" in text
    assert "\n  links:\n  - {between: [cloud, mast]}\n" in text


@pytest.mark.parametrize("sensors", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_what_lists_very_many_sensors_one_by_one_is_read_back(sensors: int, tmp_path: Path) -> None:
    whole = scenario({"topology": one_by_one(sensors)})
    path = tmp_path / "large.yaml"
    path.write_text(written_out(whole), encoding="utf-8")
    assert load(path) == whole


def test_what_could_not_be_read_back_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedsim.scenario.yaml_writer.MAX_ENTRIES", 20)
    refused = "topology.nodes: cannot be kept in a run folder: has 32 entries, and at most 20 are read back; describe"
    with pytest.raises(UserError, match=refused):
        run(scenario({"topology": one_by_one(30)}), out=tmp_path / "run")
    with pytest.raises(UserError, match=refused):
        validate(scenario({"topology": one_by_one(30)}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["half a \ud800", "null \0", "x" * 100_001], ids=["half", "null", "long"])
def test_text_that_no_scenario_can_hold_is_refused_before_a_run(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^description: cannot be kept in a run folder: '.*'"):
        run(scenario({"description": text}), out=tmp_path / "run")
    assert not list(tmp_path.iterdir())
