"""``--set`` changes one value of a scenario, by the path and with the spelling of the file, or says why it cannot."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.errors import UserError
from fedsim.scenario.document import Document, KeyPath
from fedsim.scenario.overrides import apply
from fedsim.scenario.scalars import show_text
from fedsim.scenario.yaml_reader import parse_yaml

TEXT = """\
name: park
stop: null
training: {batch_size: 5}
topology: ../topologies/park.yaml
slow: &cell {rate_bps: 1}
fast: *cell
grid: [[1, 2], [3, 4]]
protocols:
  - {name: fedavg}
  - {name: fedprox, mu: 1}
  - {name: fedprox, mu: 2, label: strong}
  - {name: centralised, label: fedavg}
  - no mapping
twins: [{name: a}, {name: a}, {name: c, label: d}, {name: e, label: c}, {name: f, label: g}, {name: f, label: h}]
nameless: [1, 2]
none: []
many: [{name: a0}, {name: a1}, {name: a2}, {name: a3}, {name: a4}, {name: a5}, {name: a6}, {name: a7}, {name: a8},
  {name: a9}, {name: a10}, {name: a11}]
"""


def park() -> Document:
    return parse_yaml(TEXT, "park.yaml")


def value_at(document: Document, path: KeyPath) -> object:
    value: object = document.data
    for step in path:
        assert isinstance(value, dict | list)
        value = value[step]  # type: ignore[index]
    return value


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("name=other", ("name",), "other"),
        ("name='5'", ("name",), "5"),
        ("training.batch_size=10", ("training", "batch_size"), 10),
        ("training.batch_size=0x10", ("training", "batch_size"), 16),
        ("training.batch_size=on", ("training", "batch_size"), "on"),
        ("training.batch_size=null", ("training", "batch_size"), None),
        ("training.epochs=2", ("training", "epochs"), 2),  # a last key that is not there yet
        ("evaluate.every=5", ("evaluate",), {"every": 5}),  # nor its mapping
        ("training.a.b.c=2", ("training", "a"), {"b": {"c": 2}}),
        ("stop.rounds=2", ("stop", "rounds"), 2),  # a mapping without anything in it is empty
        ("protocols.strong.training.epochs=2", ("protocols", 2, "training"), {"epochs": 2}),
        ("seeds=[1, 2, 3]", ("seeds",), [1, 2, 3]),
        ("stop={rounds: 5, sim_time_s: .inf}", ("stop",), {"rounds": 5, "sim_time_s": float("inf")}),
        ("name=a=b", ("name",), "a=b"),
        (" name = x ", ("name",), "x"),
        ("name='a #b'", ("name",), "a #b"),
        ("name=a#b", ("name",), "a#b"),
        ("grid.1.0=9", ("grid", 1, 0), 9),
        ("grid[1][0]=9", ("grid", 1, 0), 9),  # as messages write a path
        ("protocols.0.fraction=0.3", ("protocols", 0, "fraction"), 0.3),
        ("protocols.strong.mu=9", ("protocols", 2, "mu"), 9),  # by label
        ("protocols.fedprox.mu=9", ("protocols", 1, "mu"), 9),  # by the name of the only one without a label
        ("twins.c.x=9", ("twins", 3, "x"), 9),  # a title goes before a name, which is another's here
        ("protocols.centralised.mu=9", ("protocols", 3, "mu"), 9),  # by a name that is nobody's title
        ("protocols.centralised={name: x}", ("protocols", 3), {"name": "x"}),
    ],
)
def test_an_override_changes_one_value(assignment: str, path: KeyPath, value: object) -> None:
    changed = apply(park(), [assignment])
    assert value_at(changed, path) == value
    assert changed.where(path) == f"--set {assignment}"
    assert changed.where((*path, "inside")) == f"--set {assignment}"
    untouched = {other: park().where(other) for other in park().locations if other[: len(path)] != path}
    assert {other: changed.where(other) for other in untouched} == untouched
    assert all(changed.data[key] == park().data[key] for key in park().data if key != path[0])


def test_a_piece_of_a_file_keeps_its_comments() -> None:
    assert apply(park(), ["stop=  # of this plant\n  rounds: 2  # a few"]).data["stop"] == {"rounds": 2}


def test_overrides_are_applied_in_their_order() -> None:
    changed = apply(park(), ["stop={rounds: 1}", "stop.rounds=2", "stop.rounds=3", "name=x"])
    assert changed.data["stop"] == {"rounds": 3}
    assert changed.where(("stop",)) == "--set stop={rounds: 1}"
    assert changed.where(("stop", "rounds")) == "--set stop.rounds=3"
    assert apply(park(), []) == park()


def test_an_override_changes_neither_the_document_nor_what_an_alias_shares() -> None:
    document = park()
    before = copy.deepcopy(document.data)
    changed = apply(document, ["slow.rate_bps=7", "protocols.strong.mu=7", "training.epochs=7"])
    assert document.data == before and document == park()
    assert changed.data["slow"] == {"rate_bps": 7}
    assert changed.data["fast"] == {"rate_bps": 1}
    assert changed.where(("fast", "rate_bps")) == "park.yaml:5"


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        ("name", "is not of the form key.path=value, for example training.epochs=2"),
        ("name=a #b", "'#b' is a comment in YAML, and would be left out; put quotes around a text that has a #"),
        ("name=#b", "'#b' is a comment in YAML"),
        ("name='a' #b # c", "'#b # c' is a comment in YAML"),
        ("=5", "is not of the form key.path=value"),
        ("training..epochs=5", "is not of the form key.path=value"),
        ("training.=5", "is not of the form key.path=value"),
        ("name=", "has no value; write null for none"),
        ("name= ", "has no value; write null for none"),
        ("seeds=[1, 2", "the value is not YAML: did not find expected ',' or ']'"),
        ("name=!!python/name:os.system x", "the value is not YAML: the tag '!!python/name:os.system' is not allowed"),
        ("name={a: 1, a: 2}", "the value is not YAML: the key 'a' stands twice"),
        ("devices.0.x=2", "devices is empty or missing and has no item 0; write all of it"),
        ("stop[3]=2", "stop is empty or missing and has no item 3; write all of it"),
        ("topology.cells=2", "topology is text ('../topologies/park.yaml') and has no keys"),
        ("training.batch_size.x=2", "training.batch_size is a number (5) and has no keys"),
        ("grid.2=1", "grid has positions 0 to 1, and none at 2"),
        ("grid.-1=1", "grid has positions 0 to 1, and none at -1"),
        ("none.0=1", "none has no items, and none at 0"),
        (
            "protocols.fedprx.mu=1",
            "protocols has no item called 'fedprx'; did you mean 'fedprox'? "
            "(known: fedavg, fedprox, strong; or a position counted from 0)",  # each title once
        ),
        ("many.x.y=1", "many has no item called 'x' (known: a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 and 2 more; or a "),
        ("nameless.x=1", "nameless has no item called 'x' (known: none has a name; or a position counted from 0)"),
        ("protocols.fedavg.mu=1", "protocols has 2 items with the title 'fedavg'; write protocols.0 or protocols.3"),
        ("twins.f.x=1", "twins has 2 items with the name 'f'; write twins.4 or twins.5"),
    ],
)
def test_an_override_that_leads_nowhere_says_why(assignment: str, problem: str) -> None:
    with pytest.raises(UserError) as caught:
        apply(park(), [assignment])
    assert str(caught.value).startswith(f"--set {show_text(assignment)}: {problem}")


@given(st.text() | st.text("abn.[]01={}:-,' ", max_size=20).map(lambda text: f"protocols.{text}"))
def test_any_assignment_is_a_change_or_one_message(assignment: str) -> None:
    try:
        changed = apply(park(), [assignment])
    except UserError as error:
        assert str(error).startswith("--set ")
    else:
        assert changed.data != park().data or changed.locations != park().locations


def test_a_long_assignment_is_shortened_in_messages() -> None:
    changed = apply(park(), ["name=" + "x" * 1000])
    assert len(changed.where(("name",))) < 80
