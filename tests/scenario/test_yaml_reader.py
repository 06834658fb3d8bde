"""What a scenario file may say, where each value stands, and that everything else is one message for the user."""

from __future__ import annotations

import gc
import json
import math
import tracemalloc
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fedsim.errors import UserError
from fedsim.quick import in_seconds
from fedsim.scenario import yaml_reader
from fedsim.scenario.document import Document, KeyPath
from fedsim.scenario.yaml_reader import parse_yaml, read_yaml


def read(text: str) -> dict[str, object]:
    return parse_yaml(text, "s.yaml").data


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_yaml(text, "s.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers of PyYAML: the C one is not built everywhere."""
    if not hasattr(yaml, request.param):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(yaml_reader, "_LOADER", getattr(yaml, request.param))


CORE_SCHEMA: list[tuple[str, object]] = [
    ("", None), ("~", None), ("null", None), ("Null", None), ("nULL", "nULL"),
    ("true", True), ("TRUE", True), ("False", False), ("tRUE", "tRUE"),
    ("yes", "yes"), ("no", "no"), ("on", "on"), ("off", "off"), ("y", "y"), ("Yes", "Yes"),
    ("12", 12), ("012", 12), ("-7", -7), ("+7", 7), ("0o17", 15), ("0x1F", 31), ("0", 0), ("017", 17),
    ("0b11", "0b11"), ("-0x1", "-0x1"), ("0o8", "0o8"), ("1_000", "1_000"), ("1,000", "1,000"), ("1:30", "1:30"),
    ("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("-.5", -0.5), ("1e6", 1e6), ("1.0e+6", 1e6), ("1E-3", 1e-3), ("+1.5", 1.5),
    ("0.00e-999", 0.0), ("5e-324", 5e-324), ("+", "+"), ("-x", "-x"), ("0x", "0x"),
    (".inf", math.inf), ("-.inf", -math.inf), ("+.Inf", math.inf), ("inf", "inf"), ("nan", "nan"), (".", "."),
    ("e5", "e5"), ("1e", "1e"), ("1.2.3", "1.2.3"), ("٣", "٣"),
    ("2024-01-31", "2024-01-31"), ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"), ("10 Mbps", "10 Mbps"), ("=", "="),
    ("'5'", "5"), ('"true"', "true"), ("''", ""), ('"1e6"', "1e6"), ("'~'", "~"),
]  # fmt: skip


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(("text", "value"), CORE_SCHEMA)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    found = read(f"key: {text}")["key"]
    assert found == value and type(found) is type(value)


def test_nan_is_a_number() -> None:
    found = read("key: .nan")["key"]
    assert isinstance(found, float) and math.isnan(found)


def test_a_block_of_text_that_looks_like_a_number_is_text() -> None:
    assert read("a: |\n  5\nb: >-\n  true\n") == {"a": "5\n", "b": "true"}


@pytest.mark.parametrize("key", ["on", "off", "yes", "no", "2024-01-31", "1_000", "'5'", '"<<"', "'true'", "''", "a b"])
def test_a_key_that_is_text_stays_text(key: str) -> None:
    assert read(f"{key}: 1") == {key.strip("'\""): 1}


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "s.yaml:3:1: the key 'a' stands twice: in line 1 and in line 3"),
        ("5: 1", "s.yaml:1:1: a key is text; 5 is a number: put it into quotes"),
        ("? [1]\n: 2", "s.yaml:1:3: a key is text; this is a list (put text with brackets into quotes)"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "s.yaml:3:3: merge keys (<<) are not part of YAML 1.2; write the keys out"),
        ("a: &x k\n*x : 1", "s.yaml:2:1: the alias *x cannot be a key; write the key out"),
        ("a: *x", "s.yaml:1:4: there is no anchor &x before this alias"),
        ("cell: &cell 1\na: *cel", "s.yaml:2:4: there is no anchor &cel before this alias; did you mean 'cell'?"),
        ("a: &x [*x]", "s.yaml:1:8: the alias *x stands inside its own anchor (line 1)"),
        ("a: &x 1\nb: &x 2", "s.yaml:2:4: the anchor &x stands twice: in line 1 and here"),
        ("a: !!python/object:os.system [ls]", "s.yaml:1:4: the tag '!!python/object:os.system' is not allowed"),
        ("a: !!str 5", "s.yaml:1:4: the tag '!!str' is not allowed; write the plain value (text in quotes)"),
        ("a: 1\n---\nb: 1", "s.yaml:2:1: a second document starts here; a file holds one"),
        ("", "s.yaml:1:1: a scenario is a mapping (key: value); this is empty"),
        ("- a", "s.yaml:1:1: a scenario is a mapping (key: value); this is a list"),
        ("a: 1e999", "s.yaml:1:4: 1e999 is too large for a number; write .inf for unlimited"),
        ("a: -0.01e-999", "s.yaml:1:4: -0.01e-999 is too small for a number; write 0 for nothing"),
        ("a: " + "9" * 5000, "has 5000 digits; a whole number has at most 300"),
        ("a: 0x" + "f" * 298, "ffffffffff... is too large for a number"),
        ("? " + "x" * 1025, "has 1025 characters, and a key has at most 1024"),
        ("a: " + "x" * 100_001, "s.yaml:1:4: the text has 100001 characters, and a text has at most 100000"),
        ("a: " + "[" * 50 + "]" * 50, "s.yaml:1:53: lists and mappings are nested more than 50 deep"),
        ("a: '\0'", "s.yaml:1:5: the character U+0000 cannot stand in YAML; is this a text file?"),
        ("a: 1\nb: \x1b[31m", "s.yaml:2:4: the character U+001B cannot stand in YAML"),
        ("a: \ud800", "s.yaml:1:4: the character U+D800 cannot stand in YAML"),
        ('a: "\\0"', "s.yaml:1:4: the text holds a null character or half a character"),
        ('a: "\\UFFFFFFFF"', "s.yaml:1:"),
        ("a:\n\tb: 1", "s.yaml:2:1: found character"),
        ("a:\n\tb: 1", "; YAML indents with spaces, not with tabs"),
        ("a: b: c", "s.yaml:1:5: mapping values are not allowed"),
        ("a: [1, 2]]", "s.yaml:1:10: "),
        ("9" * 400 + ": 1", "s.yaml:1:1: a key is text; 9"),
        ("a: 'x\nb: 1\n", "(while scanning a quoted scalar that starts in line 1)"),
    ],
)  # fmt: skip
def test_what_no_scenario_may_be_is_refused_with_its_place(text: str, message: str) -> None:
    assert message in refusal(text)
    assert refusal(text).startswith("s.yaml:")


def test_an_open_bracket_is_traced_to_its_line() -> None:
    assert "(while parsing a flow sequence that starts in line 2)" in refusal("a: 1\nb: [1, 2\nc: 3\n")


def test_forty_nine_lists_in_the_top_mapping_are_not_too_deep() -> None:
    data: object = read("a: " + "[" * 49 + "the heart" + "]" * 49)["a"]
    for _ in range(49):
        assert isinstance(data, list)
        data = data[0]
    assert data == "the heart"


DOCUMENT = """\
# a comment
name: park
network:
  cell: &cell
    rate_bps: 1e6
    duplex:
      half
  other: *cell
protocols:
  - name: fedavg
  - {name: fedprox,
     mu: 0.1}
  - *cell
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ((), 2, 1),
        (("name",), 2, 1),
        (("network", "cell"), 4, 3),
        (("network", "cell", "rate_bps"), 5, 5),
        (("network", "cell", "duplex"), 6, 5),  # where the key is
        (("network", "other"), 8, 3),
        (("network", "other", "rate_bps"), 5, 5),  # where the anchor wrote it
        (("protocols", 0), 10, 5),
        (("protocols", 0, "name"), 10, 5),
        (("protocols", 1), 11, 5),
        (("protocols", 1, "mu"), 12, 6),
        (("protocols", 2), 13, 5),
        (("protocols", 2, "duplex"), 6, 5),
        (("protocols", 1, "nothing", "there"), 11, 5),  # the nearest ancestor
        (("protocols", 7), 9, 1),
        (("nothing",), 2, 1),
    ],
)
@pytest.mark.usefixtures("loader")
def test_a_value_knows_its_place(path: KeyPath, line: int, column: int) -> None:
    document = parse_yaml(DOCUMENT, "park.yaml")
    location = document.location_of(path)
    assert (location.line, location.column) == (line, column)
    assert document.where(path) == f"park.yaml:{line}"


def paths(value: object, path: KeyPath = ()) -> list[KeyPath]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for step, item in steps for inner in paths(item, (*path, step)))]


def test_places_are_a_mapping_of_every_path() -> None:
    document = parse_yaml(DOCUMENT, "park.yaml")
    assert list(document.locations) == paths(document.data)
    assert len(document.locations) == len(paths(document.data))
    assert document.locations[("protocols", 1, "mu")].line == 12
    assert ("protocols", 5) not in document.locations and ("name", "x") not in document.locations


CHARACTERS = st.characters(min_codepoint=1, max_codepoint=0xFFFF, exclude_categories=["Cs"], exclude_characters="\x7f")
KEYS = st.text(CHARACTERS, max_size=100)  # YAML 1.2.2, 7.4: at most 1024 characters, escapes written out
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
JSON_LIKE = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(CHARACTERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(data=st.dictionaries(KEYS, JSON_LIKE, max_size=4), indent=st.sampled_from([None, 2]))
def test_json_is_read_back_as_it_was_written(data: dict[str, object], indent: int | None) -> None:
    document = parse_yaml(json.dumps(data, indent=indent), "s.json")
    assert document.data == data
    assert list(document.locations) == paths(data)


@given(text=st.text() | st.text("{}[]:,-&*!|>'\"%@#?<~ \n\t\\ab01.", max_size=40))
def test_any_text_is_a_document_or_one_line_for_the_user(text: str) -> None:
    try:
        document = parse_yaml(text, "s.yaml")
    except UserError as error:
        assert str(error).startswith("s.yaml:") and "\n" not in str(error)
    else:
        assert list(document.locations) == paths(document.data)


@given(content=st.binary(max_size=60))
def test_any_file_is_a_document_or_one_line_for_the_user(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(content)
    try:
        assert isinstance(read_yaml(path), Document)
    except UserError as error:
        assert str(error).startswith(f"{path}:") and "\n" not in str(error)


def exploding(levels: int) -> str:
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)]
    return "\n".join(lines)


def test_aliases_that_explode_are_refused_in_little_memory() -> None:
    tracemalloc.start()
    try:
        message = refusal(exploding(levels=45))  # 10^45 values
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "more than 1000000 values (aliases written out)" in message
    assert peak_bytes < 1_000_000


def test_aliases_count_as_what_they_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &a [1, 2, 3]\nb: [*a, *a]"  # 1 mapping + list of 1 + 3 + list of 1 + 2 x 4
    monkeypatch.setattr("fedsim.scenario.composer.MAX_VALUES", 14)
    assert len(paths(read(text))) == 14
    monkeypatch.setattr("fedsim.scenario.composer.MAX_VALUES", 13)
    assert "more than 13 values" in refusal(text)


@pytest.mark.parametrize(("text", "message"), [("a: [1, 2, 3, 4]", "s.yaml:1:14: a list has"), (
    "b: 1\na: {a: , b: , c: ,\n  d: }", "s.yaml:3:3: a mapping has"
)])  # fmt: skip
def test_a_list_or_mapping_has_only_so_many_entries(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedsim.scenario.composer.MAX_ENTRIES", 4)
    assert read(text)
    monkeypatch.setattr("fedsim.scenario.composer.MAX_ENTRIES", 3)
    assert refusal(text) == f"{message} more than 3 entries here; put data into another file"


def test_a_text_and_a_key_of_the_greatest_length_are_read() -> None:
    assert read(f"? {'k' * 1024}\n: {'x' * 100_000}") == {"k" * 1024: "x" * 100_000}


def test_aliases_do_not_hide_depth() -> None:
    text = "\n".join(["a0: &a0 [1]", *(f"a{level}: &a{level} [*a{level - 1}]" for level in range(1, 60))])
    assert "s.yaml:50:12: lists and mappings are nested more than 50 deep" in refusal(text)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_a_file_of_openings_is_refused_at_once(opening: str) -> None:
    assert refusal(opening * 1_000_000)


@pytest.mark.usefixtures("loader")
def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: park\r\nseeds: [1]\r\n")
    document = read_yaml(path)
    assert document.data == {"name": "park", "seeds": [1]}
    assert document.where(("seeds", 0)) == f"{path}:2"
    assert document.location_of(("name",)).column == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: park\nplace: M\xfcnchen", ":2: is not UTF-8 text (byte 0xfc); save the file as UTF-8"),
        ("name: park".encode("utf-16"), ":1: is not UTF-8 text (byte 0xff); save the file as UTF-8"),
        ("name: park".encode("utf-16-le"), ":1:2: the character U+0000 cannot stand in YAML; is this a text file?"),
        (b"#" * 20_000_001, ": is too large: a YAML file is at most 20 MB"),
    ],
    ids=["latin-1", "utf-16", "utf-16 without its mark", "large"],
)
def test_a_file_that_is_no_scenario_is_one_message(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_yaml(path)
    assert str(caught.value) == f"{path}{message}"


def test_a_quick_command_reads_smaller_files(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"a: 1\n" + b"#" * 5_999_995)
    with in_seconds():
        assert read_yaml(path).data == {"a": 1}
    path.write_bytes(b"a: 1\n" + b"#" * 5_999_996)
    with in_seconds(), pytest.raises(UserError, match=r"has 7 MB of YAML \(JSON is read faster\), and at most 6 are"):
        read_yaml(path)
    assert read_yaml(path).data == {"a": 1}


def test_the_collector_of_garbage_goes_on_as_before() -> None:
    for switch, running in ((gc.enable, True), (gc.disable, False)):
        try:
            switch()
            read("a: 1")
            refusal("a: [")
            assert gc.isenabled() == running
        finally:
            gc.enable()


def test_a_missing_file_gets_a_hand(tmp_path: Path) -> None:
    (tmp_path / "quickstart.yaml").write_text("name: x")
    for path, message in [
        (tmp_path / "quikstart.yaml", ": there is no such file; did you mean 'quickstart.yaml'?"),
        (tmp_path / "zzz", ": there is no such file"),
        (tmp_path / "no" / "s.yaml", f": there is no such file, and no folder {str(tmp_path / 'no')!r}"),
        (tmp_path, ": is a folder; the path of a YAML file is needed (it has 'quickstart.yaml')"),
        (tmp_path / "quickstart.yaml" / "x", ": cannot be read (Not a directory)"),
    ]:
        with pytest.raises(UserError) as caught:
            read_yaml(path)
        assert str(caught.value) == f"{path}{message}"
