"""JSON that is read piece by piece says what `json` says, wherever the pieces end, and what is none is refused."""

from __future__ import annotations

import json

import pytest

from fedsim.data.reading import json_pieces
from fedsim.data.reading.json_pieces import JsonPieces

SOUND = (
    '{"b": [1, 22.5, -3e-2, [], {}], "a": {"x": ["\\u00e9\\"]}", null, true], "y": {}}, "c" : [ ] , "d":-0.125}',
    ' \n\t[{"a": [[], [[]]]}, "\U0001f600", 12345678901234567890, 1e999, NaN]\r\n ',
    "{}",
    "[ ]",
    '"word"',
    "-12.5",
)
BROKEN = (
    "",
    " ",
    "{",
    "[1",
    "[1,",
    "[1,]",
    '{"a":1,}',
    '{"a" 1}',
    "{a:1}",
    "{1:1}",
    "[1 2]",
    '{"a":1 "b":2}',
    "[1}",
    '{"a":1]',
    '{"a',
    "[tru]",
    "[1]]",
    "{} x",
    "[01]",
    '["\n"]',
    "[" * 100_000,
    '{"a":' * 100_000,
    "[" + "1" * 5000 + "]",
)


def pieces(text: bytes, size: int) -> list[bytes]:
    return [text[begin : begin + size] for begin in range(0, len(text), size)]


def stepped(text: JsonPieces, depth: int):
    """The next value, by steps into what lies less deep than *depth*."""
    if depth and text.peek() == "{":
        return {key: stepped(text, depth - 1) for key in text.names()}
    if depth and text.peek() == "[":
        return [stepped(text, depth - 1) for _ in text.items()]
    return text.value()


def whole(content: bytes, size: int, depth: int):
    text = JsonPieces(pieces(content, size))
    value = stepped(text, depth)
    text.end()
    return value


@pytest.mark.parametrize("depth", [0, 1, 2, 9])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("text", SOUND)
def test_pieces_say_what_the_whole_says(text, size, depth):
    assert repr(whole(text.encode(), size, depth)) == repr(json.loads(text))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-32-be"])
def test_the_encoding_is_told_by_the_first_bytes(encoding):
    assert whole(SOUND[0].encode(encoding), 5, 2) == json.loads(SOUND[0])


@pytest.mark.parametrize("depth", [0, 1, 9])
@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:12])
def test_what_is_no_json_is_refused(text, depth):
    with pytest.raises((ValueError, RecursionError)):
        json.loads(text)
    for size in (4, 2000):
        with pytest.raises((ValueError, RecursionError)):
            whole(text.encode(), size, depth)


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_what_is_wrong_is_told_by_its_place_in_the_file(size):
    with pytest.raises(ValueError, match="Expecting value at character 18"):
        whole(b'{"a": [1, 2], "b":?}', size, 1)
    with pytest.raises(ValueError, match="Expecting ',' or '}' at character 7"):
        whole(b'{"a": 1]', size, 1)


def test_what_is_large_is_read_by_steps_and_taken_whole_only_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(json_pieces, "LONGEST", 1000)
    large = json.dumps([list(range(100))] * 100).encode()
    assert whole(large, 50, 1) == json.loads(large)
    endless = iter([b"[", *[b"1,"] * 10_000])
    with pytest.raises(ValueError, match="or more than 1000 characters in one value"):
        JsonPieces(endless).value()
    assert len(list(endless)) > 8500
