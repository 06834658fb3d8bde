"""The check of a very large document finds the same scenario as any other, and of its mistakes only some."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from small_worlds import BASE

from fedsim.errors import UserError
from fedsim.scenario import load as reading
from fedsim.scenario.document import Document, Mark, SourceLocations
from fedsim.scenario.load import checked
from fedsim.scenario.schema import Scenario

FAIR = {"name": "fair", "weights": {"a": "x", "b": "x"}}
NODES = {"c": {"kind": "cloud"}, "b": {"kind": "station"}, "s": {"kind": "sensors", "attach": 3}}

WRONG: dict[str, dict[str, Any]] = {  # two mistakes each, in items of one list or mapping
    "a list": {"seeds": [-1, -2]},
    "a mapping": {"topology": {"name": "explicit", "nodes": NODES}},
    "a mapping in settings of their own": {
        "network": {"cell": {"radio": {"name": "fixed", "profile": "lte_m_m1"}, "discipline": FAIR}}
    },
    "settings in a list": {"protocols": [{"name": "fedavg", "clients": 0}, {"name": "fedavg", "clients": -1}]},
    "settings in a mapping": {"devices": {"classes": {"a": {"compute": 1}, "b": {"compute": 2}}}},
}


def document(changes: dict[str, Any]) -> Document:
    return Document(BASE | changes, "small.yaml", SourceLocations(Mark(1, 1)))


def mistakes(changes: dict[str, Any]) -> int:
    with pytest.raises(ValidationError) as refused:
        checked(document(changes))
    return refused.value.error_count()


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_in_a_large_document_the_first_mistake_of_a_list_or_mapping_is_enough(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = mistakes(changes)
    monkeypatch.setattr(reading, "MANY_VALUES", 10)
    assert 1 <= mistakes(changes) < every


@pytest.mark.parametrize("most", [10, 10_000])
def test_a_right_document_is_the_same_scenario_however_large_it_is(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MANY_VALUES", most)
    scenario = checked(document({"topology": {"name": "star", "devices": 3}}))
    assert scenario == Scenario.model_validate(BASE | {"topology": {"name": "star", "devices": 3}})
    with pytest.raises(UserError, match=r"small\.yaml:1: devices: wrong"), scenario.about("devices"):
        raise UserError("wrong")
