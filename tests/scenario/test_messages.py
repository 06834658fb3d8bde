"""What is wrong with a scenario is said in the scenario's words: place, key, value, rule, way out."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, Strict, ValidationError, model_validator

from fedsim import registry
from fedsim.scenario.document import Document
from fedsim.scenario.messages import explain
from fedsim.scenario.overrides import apply
from fedsim.scenario.yaml_reader import parse_yaml
from fedsim.settings import (
    Component,
    Count,
    Fraction,
    Name,
    NonNegative,
    OneOf,
    Positive,
    PositiveOrInfinite,
    Settings,
    Several,
)

KIND = "test_recipes"
REGISTRY = {"fedavg": f"{__name__}:Average", "fedprox": f"{__name__}:Proximal", "mu": f"{__name__}:Mu"}


def _refuse(word: str) -> str:
    raise ValueError(f"{word!r} is no word")


class Average(Component):
    name: Literal["fedavg"] = "fedavg"
    fraction: Fraction | None = None
    clients: Count | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Average:
        if self.fraction is not None and self.clients is not None:
            raise ValueError("fraction and clients exclude each other;\nleave one out")
        return self


class Proximal(Component):
    name: Literal["fedprox"] = "fedprox"
    mu: NonNegative


class Mu(Component):
    """Its tag is also one of its keys."""

    name: Literal["mu"] = "mu"
    mu: Positive = 1.0


class Cell(Settings):
    rate_bps: PositiveOrInfinite = 1e6
    delay_s: NonNegative = 0.0
    size_bytes: Count = 1
    duplex: Literal["full", "half"] = "full"
    shares: dict[str, Fraction] | None = None
    cells: dict[str, Cell] | None = None
    limit: Positive | Literal["auto"] = "auto"


class Data(Settings):
    name: str
    seeds: Annotated[Several[Count], Field(min_length=1)] = (1,)
    path: str | None = None
    shuffle: bool = True


class Peers(Settings):
    first: Cell
    second: Cell
    third: Cell


with pytest.MonkeyPatch.context() as _patch:
    _patch.setitem(registry.KINDS, KIND, __name__)

    class Root(Settings):
        data: Data = Data(name="digits")
        cell: Cell = Cell()
        protocols: Several[Annotated[Component, OneOf(KIND)]] = ()
        one: Annotated[Component, OneOf(KIND)] | None = None
        named: dict[str, Annotated[Component, OneOf(KIND)]] | None = None
        rate_bps: Positive | Literal["auto", "nominal"] = "auto"
        pair: Annotated[tuple[int, str], Strict(False)] | None = None
        part: Cell | Several[Cell] | PositiveOrInfinite = 1.0
        either: Cell | Data = Cell()
        checked: Average | Count = 1
        topology: str | Annotated[Component, OneOf(KIND)] = "star"
        slots: Annotated[dict[Annotated[str, Field(pattern="^[a-z]+$")], Count], Field(max_length=2)] | None = None
        rooms: dict[Name, Cell] | None = None
        shops: dict[Name, Annotated[Component, OneOf(KIND)]] | None = None

    class Demanding(Settings):
        protocols: Several[Annotated[Component, OneOf(KIND)]] = ()
        one: Annotated[Component, OneOf(KIND)] | None = None
        peers: Peers
        rate_bps: Positive
        pair: tuple[int, str]
        slots: dict[str, Count]


@pytest.fixture(autouse=True)
def _kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.KINDS, KIND, __name__)


def message(text: str, *assignments: str, root: type[BaseModel] = Root) -> str:
    document = apply(parse_yaml(text, "s.yaml"), assignments)
    with pytest.raises(ValidationError) as caught:
        root.model_validate(document.data)
    return str(explain(caught.value, document, root))


ALONE = [
    # limits
    ("cell: {rate_bps: -3}", "cell.rate_bps: -3 must be greater than 0"),
    ("cell: {delay_s: -0.5}", "cell.delay_s: -0.5 must be at least 0"),
    ("cell: {shares: {a: 1.5}}", "cell.shares.a: 1.5 must be at most 1"),
    ("cell: {rate_bps: .nan}", "cell.rate_bps: .nan is not a number"),
    ("cell: {delay_s: .nan}", "cell.delay_s: .nan is not a number"),
    ("cell: {delay_s: .inf}", "cell.delay_s: .inf must be finite"),
    ("cell: {delay_s: -.inf}", "cell.delay_s: -.inf must be finite"),
    ("slots: {a: 1, b: 2, c: 3}", "slots: {a: 1, b: 2, c: 3} must have a length of at most 2"),
    ("data: {name: x, seeds: []}", "data.seeds: [] must have a length of at least 1"),
    ("data: {name: x, seeds: [0]}", "data.seeds[0]: 0 must be at least 1"),  # long enough, though its item is wrong
    ("slots: {A: 1}", "slots.A: the key 'A' must match the pattern ^[a-z]+$"),
    ("rooms: {'': {}}", 'rooms."": the key \'\' must have a length of at least 1'),
    ("shops: {'': {name: mu}}", 'shops."": the key \'\' must have a length of at least 1'),
    ("cell: {rate_bps: 1.1e18}", "cell.rate_bps: 1.1e+18 must be at most 1e+18, or .inf for no limit"),
    ("cell: {rate_bps: 1e-300}", "cell.rate_bps: 1e-300 must be at least 1e-18"),
    ("cell: {delay_s: 1.1e18}", "cell.delay_s: 1.1e+18 must be at most 1e+18"),
    ("cell: {size_bytes: 1000000001}", "cell.size_bytes: 1000000001 must be at most 1000000000"),
    # keys
    ("data: {}", "data: needs the key 'name'"),
    ("data: {name: x, sedes: [1]}", "data.sedes: unknown key; did you mean 'seeds'? (keys: name, seeds, "
     "path, shuffle)"),
    ("cell: {rate_mbps: 3}", "cell.rate_mbps: unknown key; did you mean 'rate_bps'? (keys: "),
    ("cell: {size: 3}", "cell.size: unknown key; did you mean 'size_bytes'? (keys: "),
    ("cell: {DELAY_S: 3}", "cell.DELAY_S: unknown key; did you mean 'delay_s'? (keys: "),
    ("cell: {cells: {north: {zzz: 1}}}", "cell.cells.north.zzz: unknown key (keys: rate_bps, delay_s, size_bytes,"),
    ('cell: {"odd key": 1}', 'cell."odd key": unknown key (keys: '),
    ("rooms: {'[key]': {'[key]': 1}}", 'rooms."[key]"."[key]": unknown key (keys: '),
    # what cannot be seen, and what would be more than a line
    ('data: {"n\u0430me": x, name: y}', "data.n\u0430me: unknown key; did you mean 'name'? ('\u0430' is U+0430)"),
    ('data: {"na\\u200bme": x, name: y}', 'data."na\\u200bme": unknown key; did you mean \'name\'? (keys: '),
    ('data: {name: ["\\e[2J"]}', r"data.name: ['\x1b[2J'] is a list; text is needed"),
    ('data: {name: {"a\\nb\\u202e": 1}}', r"data.name: {a\nb\u202e: 1} is a mapping; text is needed"),
    ('"two\\nlines": {}', r'"two\nlines": unknown key (keys: '),
    ('"gr\u00fcn er": {}', '"gr\u00fcn er": unknown key (keys: '),
    # types
    ("cell: {size_bytes: '5'}", "cell.size_bytes: '5' is text; a whole number is needed (remove the quotes)"),
    ("cell: {delay_s: '5.5'}", "cell.delay_s: '5.5' is text; a number is needed (remove the quotes)"),
    ("cell: {size_bytes: 5.5}", "cell.size_bytes: 5.5 is not whole; a whole number is needed"),
    ("cell: {size_bytes: 1e3}", "cell.size_bytes: 1000.0 is written with a point or an exponent; a whole number is "
     "needed: write 1000"),
    ("cell: {size_bytes: 1_000}", "cell.size_bytes: '1_000' is text; a whole number is needed: write 1000"),
    ("cell: {size_bytes: true}", "cell.size_bytes: true is a truth value; a whole number is needed"),
    ("cell: {size_bytes: null}", "cell.size_bytes: null is empty; a whole number is needed (leave the key "
     "out for its default)"),
    ("data: {name: null}", "data.name: null is empty; text is needed"),
    ("data: {name: 5}", "data.name: 5 is a number; text is needed (put it into quotes)"),
    ("data: {name: x, shuffle: yes}", "data.shuffle: 'yes' is text; true or false is needed: write true"),
    ("data: {name: x, shuffle: 0}", "data.shuffle: 0 is a number; true or false is needed"),
    ("data: {name: x, seeds: 1}", "data.seeds: 1 is a number; a list is needed: write [1]"),
    ("data: {name: x, seeds: {a: 1}}", "data.seeds: {a: 1} is a mapping; a list is needed (start each item with '- ')"),
    ("data: {name: x, seeds: [1, [2]]}", "data.seeds[1]: [2] is a list; a whole number is needed"),
    ("data: digits", "data: 'digits' is text; a mapping is needed (keys: name, seeds, path, shuffle)"),
    ("named: [1]", "named: [1] is a list; a mapping is needed"),
    ("cell: {duplex: ful}", "cell.duplex: 'ful' is not 'full' or 'half'; did you mean 'full'?"),
    ("cell: {duplex: 1}", "cell.duplex: 1 is a number; 'full' or 'half' is needed"),
    # units
    ("cell: {rate_bps: 10 Mbps}", "cell.rate_bps: '10 Mbps' is text; write the number in bit/s: 10000000.0"),
    ("cell: {rate_bps: 2.5 MB/s}", "cell.rate_bps: '2.5 MB/s' is text; write the number in bit/s: 20000000.0"),
    ("cell: {rate_bps: 10mbit/s}", "cell.rate_bps: '10mbit/s' is text; write the number in bit/s: 10000000.0"),
    ("cell: {delay_s: 5 ms}", "cell.delay_s: '5 ms' is text; write the number in s: 0.005"),
    ("cell: {delay_s: 2h}", "cell.delay_s: '2h' is text; write the number in s: 7200.0"),
    ("cell: {delay_s: 5 MB}", "cell.delay_s: '5 MB' is text; a number is needed, in s"),
    ("cell: {size_bytes: 1GB}", "cell.size_bytes: '1GB' is text; write the number in bytes: 1000000000"),
    ("cell: {size_bytes: 2 mb}", "cell.size_bytes: '2 mb' is text; write the number in bytes: 2000000"),
    ("cell: {size_bytes: 8 Mb}", "cell.size_bytes: '8 Mb' is text; write the number in bytes: 1000000"),
    ("cell: {size_bytes: 1 KiB}", "cell.size_bytes: '1 KiB' is text; write the number in bytes: 1024"),
    ("cell: {size_bytes: 0.3 B}", "cell.size_bytes: '0.3 B' is text; a whole number is needed, in bytes"),
    ("cell: {rate_bps: unlimited}", "cell.rate_bps: 'unlimited' is text; a number is needed: write .inf"),
    ("cell: {shares: {a: 1e400 %}}", "cell.shares.a: '1e400 %' is text; a number is needed"),
    ("cell: {shares: {a: 30 %}}", "cell.shares.a: '30 %' is text; a number is needed: write 0.3"),
    # components
    ("protocols: [{name: fedvag}]", "protocols[0].name: no test recipe is called 'fedvag'; did you mean 'fedavg'? "
     "(known: fedavg, fedprox, mu)"),
    ("protocols: [{name: 3}]", "protocols[0].name: 3 is a number; the test recipe's name is needed (known: "),
    ("protocols: [{name: null}]", "protocols[0].name: null is empty; the test recipe's name is needed (known: "),
    ("protocols: [{mu: 3}]", "protocols[0]: needs the key 'name' (known: fedavg, fedprox, mu)"),
    ("protocols: [fedavg]", "protocols[0]: 'fedavg' is text; a mapping is needed: write {name: fedavg}"),
    ("protocols: [fedvag]", "protocols[0]: 'fedvag' is text; a mapping is needed, such as {name: fedavg} (known: "),
    ("protocols: [{name: fedprox}]", "protocols[0]: needs the key 'mu'"),
    ("protocols: [{name: fedavg, fraktion: 1}]", "protocols[0].fraktion: unknown key; did you mean 'fraction'?"
     " (keys: name, fraction, clients)"),
    ("protocols: [{name: fedavg, fraction: 0.5, clients: 3}]", "protocols[0]: fraction and clients exclude each other; "
     "leave one out"),
    ("protocols: [{name: mu, mu: -1}]", "protocols[0].mu: -1 must be greater than 0"),  # a tag that is also a key
    ("named: {fedprox: {name: fedprox, mu: -1}}", "named.fedprox.mu: -1 must be at least 0"),  # ... or its parent's key
    ("named: {mu: {name: mu, mu: x}}", "named.mu.mu: 'x' is text; a number is needed"),
    ("one: {name: fedprox, mu: -1}", "one.mu: -1 must be at least 0"),
    ("one: {name: prox}", "one.name: no test recipe is called 'prox'; did you mean 'fedprox'? (known: "),
    # unions
    ("rate_bps: -1", "rate_bps: -1 must be greater than 0"),
    ("rate_bps: autom", "rate_bps: 'autom' is text; a number or 'auto' or 'nominal' is needed, in bit/s; "
     "did you mean 'auto'?"),
    ("rate_bps: 4 Mbps", "rate_bps: '4 Mbps' is text; write the number in bit/s: 4000000.0"),
    ("rate_bps: []", "rate_bps: [] is a list; a number or 'auto' or 'nominal' is needed"),
    ("part: -1", "part: -1 must be greater than 0"),
    ("part: {delay_s: -1}", "part.delay_s: -1 must be at least 0"),
    ("part: [{}, {delay_s: -1}]", "part[1].delay_s: -1 must be at least 0"),
    ("part: {delay_s: x}", "part.delay_s: 'x' is text; a number is needed, in s"),
    ("part: {limit: -1}", "part.limit: -1 must be greater than 0"),  # a union in a union
    ("part: [{limit: y}]", "part[0].limit: 'y' is text; a number or 'auto' is needed"),
    ("either: {name: x, sedes: 1}", "either.sedes: unknown key; did you mean 'seeds'?"),  # fewer mistakes
    ("checked: {name: fedavg, clients: 0}", "checked.clients: 0 must be at least 1"),  # settings with a validator
    ("checked: {fraction: 0.5, clients: 3}", "checked: fraction and clients exclude each other; leave one out"),
    ("part: x", "part: 'x' is text; a mapping or a list or a number is needed"),
    ("topology: {name: fedprox, mu: -1}", "topology.mu: -1 must be at least 0"),
    ("topology: {name: q}", "topology.name: no test recipe is called 'q' (known: "),
    ("topology: 3", "topology: 3 is a number; text or a mapping is needed, such as {name: fedavg} (known: "),
    ("pair: x", "pair: 'x' is text; a list of 2 items is needed"),
    ("pair: {}", "pair: {} is a mapping; a list of 2 items is needed"),
    ("pair: []", "pair: [] has 0 items, and 2 are needed"),
    ("pair: [1]", "pair: [1] has 1 item, and 2 are needed"),
    ("pair: [1, x, 2]", "pair: [1, 'x', 2] has 3 items, and 2 are needed"),
    # the whole
    ("dta: {}", "dta: unknown key; did you mean 'data'? (keys: data, cell, protocols,"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ALONE)
def test_one_mistake_is_one_line(text: str, expected: str) -> None:
    found = message(f"# a comment\n{text}")
    assert found.startswith(f"s.yaml:2: {expected}") and "\n" not in found


def test_of_a_mapping_that_may_be_one_of_two_no_keys_are_named() -> None:
    assert message("either: [1]") == "s.yaml:1: either: [1] is a list; a mapping is needed"


def test_a_key_missing_at_the_top_has_no_path() -> None:
    assert message("seeds: [1]", root=Data) == "s.yaml:1: needs the key 'name'"


def test_a_place_is_the_line_of_the_key() -> None:
    text = "protocols:\n  - name: fedavg\n  - name: fedprox\n    mu:\n      -1\n"
    assert message(text) == "s.yaml:4: protocols[1].mu: -1 must be at least 0"


def test_a_missing_key_is_reported_where_its_parent_is() -> None:
    assert message("cell: {}\ndata:\n  seeds: [1]\n") == "s.yaml:2: data: needs the key 'name'"


def test_a_mistake_behind_an_alias_is_reported_where_it_was_written() -> None:
    found = message("cell: &cell\n  delay_s: -1\npart: *cell\n")
    assert found == "s.yaml:2: cell.delay_s: -1 must be at least 0\ns.yaml:2: part.delay_s: -1 must be at least 0"


def test_an_override_is_named_instead_of_a_line() -> None:
    expected = "--set cell.delay_s=-1: cell.delay_s: -1 must be at least 0"
    assert message("cell: {delay_s: 1}", "cell.delay_s=-1") == expected
    expected = "--set cell.dely_s=1: cell.dely_s: unknown key; did you mean 'delay_s'?"
    assert message("cell: {delay_s: 1}", "cell.dely_s=1").startswith(expected)


def test_several_mistakes_come_in_the_order_of_the_file_and_five_at_most() -> None:
    text = "protocols:\n- {name: fedprox, mu: -1}\ncell:\n  size_bytes: 0\n  delay_s: -1\n"
    text += "data:\n  name: 5\n  shuffle: 3\n  seeds: 1\npair: 3\n"
    assert message(text).splitlines() == [
        "s.yaml:2: protocols[0].mu: -1 must be at least 0",
        "s.yaml:4: cell.size_bytes: 0 must be at least 1",
        "s.yaml:5: cell.delay_s: -1 must be at least 0",
        "s.yaml:7: data.name: 5 is a number; text is needed (put it into quotes)",
        "s.yaml:8: data.shuffle: 3 is a number; true or false is needed",
        "(and 2 more)",
    ]


def test_of_very_many_mistakes_the_first_are_looked_at_and_all_are_counted() -> None:
    lines = message(f"data: {{name: x, seeds: [{'0, ' * 3_000}0]}}\nzzz: 1\n").splitlines()
    assert lines[0] == "s.yaml:1: data.seeds[0]: 0 must be at least 1"
    assert lines[5:] == ["(and 2997 more)"]


def test_a_very_long_line_loses_its_middle() -> None:
    class Wordy(Settings):
        word: Annotated[str, AfterValidator(_refuse)]

    found = message(f"word: {'x' * 5_000}", root=Wordy)
    assert len(found) < 2_000
    assert found.startswith("s.yaml:1: word: 'xxx") and " ... " in found and found.endswith("xxx' is no word")


def test_what_is_missing_comes_last_in_one_line_for_each_mapping() -> None:
    text = "one: {mu: 1}\nprotocols:\n- {name: fedprox}\npeers:\n  frist: {}\nrate_bps: -1\n"
    assert message(text, "peers.second=3", root=Demanding).splitlines() == [
        "--set peers.second=3: peers.second: 3 is a number; a mapping is needed (keys: rate_bps, delay_s, "
        "size_bytes, duplex, shares, cells, limit)",
        "s.yaml:5: peers.frist: unknown key; did you mean 'first'? (keys: first, second, third)",
        "s.yaml:6: rate_bps: -1 must be greater than 0",
        "s.yaml:1: one: needs the key 'name' (known: fedavg, fedprox, mu)",
        "s.yaml:1: needs the keys pair, slots",
        "(and 2 more)",
    ]
    assert message(text.replace("one: {mu: 1}\n", ""), "rate_bps=1", root=Demanding).splitlines()[-2:] == [
        "s.yaml:2: protocols[0]: needs the key 'mu'",
        "s.yaml:3: peers: needs the keys first, second, third",
    ]


def test_a_mapping_that_an_override_made_is_checked_as_any_other() -> None:
    assert message("seeds: [1]", "dta.name=x").startswith("--set dta.name=x: dta: unknown key; did you mean 'data'?")
    assert (
        message("cell: {}", "data.sedes=[1]")
        .splitlines()[0]
        .startswith("--set data.sedes=[1]: data.sedes: unknown key; did you mean 'seeds'?")
    )
    assert message("cell: {}", "data.seeds=[1]") == "--set data.seeds=[1]: data: needs the key 'name'"


def test_mistakes_in_a_file_that_the_scenario_names_come_after_its_own() -> None:
    document = parse_yaml("# a comment\ndata: {name: 5}\ncell: other.yaml\n", "s.yaml")
    inner = parse_yaml("delay_s: -1", "other.yaml")
    locations = document.locations.grafted("cell", inner.locations, inner.source)
    document = Document({**document.data, "cell": inner.data}, document.source, locations)
    with pytest.raises(ValidationError) as caught:
        Root.model_validate(document.data)
    assert str(explain(caught.value, document, Root)).splitlines() == [
        "s.yaml:2: data.name: 5 is a number; text is needed (put it into quotes)",
        "other.yaml:1: cell.delay_s: -1 must be at least 0",
    ]


@pytest.mark.parametrize(
    "value", ["x" * 10_000, [list(range(100))] * 1000, {f"key{n}": {"a": [{}]} for n in range(1000)}]
)
def test_a_large_value_is_shortened(value: object) -> None:
    document = parse_yaml("cell: {delay_s: 1}", "s.yaml")
    with pytest.raises(ValidationError) as caught:
        Root.model_validate({"cell": {"delay_s": value}})
    assert len(str(explain(caught.value, document, Root))) < 200


WORDS = st.sampled_from(["", "fedavg", "5", "4 Mbps", "auto", "30%", "yes", "1_000"])
SOME_KEYS = st.sampled_from(["name", "mu", "fedprox", "rate_bps", "cells", "Cell", "x"])
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SOME_KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(data=st.dictionaries(st.sampled_from([*Root.model_fields, "unknown"]), ANY_VALUE, max_size=4))
def test_every_mistake_has_a_sentence_of_the_scenario(data: dict[str, object]) -> None:
    document = parse_yaml("data: {name: x}", "s.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.KINDS, KIND, __name__)
        try:
            Root.model_validate(data)
        except ValidationError as error:
            found = str(explain(error, Document(data, "s.yaml", document.locations), Root))
            for words_of_pydantic in ("Input", "valid ", "dictionary", "tagged-union", "constrained", "function-"):
                assert words_of_pydantic not in found
            assert 1 <= len(found.splitlines()) <= 6
            assert all(line.startswith(("s.yaml:1: ", "(and ")) for line in found.splitlines())
