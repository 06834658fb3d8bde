"""Whatever users have named is text on the page: never a tag, a script, an expression, a field or a link."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from pages_read import Page
from small_studies import HOSTILE

from fedsim.report.drawing import cleaned


def shape(page: Page) -> list[str]:
    """What elements there are, but those that there are more of as there are more rows and protocols."""
    return sorted({tag for tag, _ in page.elements})


def test_no_name_becomes_an_element_or_an_attribute(hostile_text: str, page: Page) -> None:
    found = Page(hostile_text)
    assert shape(found) == shape(page)
    attributes = {name for _, own in found.elements for name in own}
    assert attributes == {name for _, own in page.elements for name in own}
    assert not {
        name for name in attributes if name.startswith("on") or name in ("src", "srcdoc", "action", "formaction")
    }


def test_each_name_is_seen_as_it_is(hostile_text: str) -> None:
    found = Page(hostile_text)
    for name in HOSTILE:
        assert name in found.words
        assert [name in row for row in found.table("Protocols").rows].count(True) == 1
    assert found.table("Runs").rows[1][0] == HOSTILE[0]


def test_scripts_are_the_two_of_every_report_and_the_policy_has_their_digests(hostile_text: str, page: Page) -> None:
    found = Page(hostile_text)
    programs = [text for own, text in found.scripts if not own]
    assert programs == [text for own, text in page.scripts if not own] and len(programs) == 2
    assert {own.get("type") for own, _ in found.scripts if own} == {"application/json"}
    (policy,) = (own["content"] for own in found.all("meta") if own.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in programs]
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:"
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]


def test_names_stand_in_the_data_of_charts_and_nowhere_else_in_them(hostile_text: str) -> None:
    for key, spec in Page(hostile_text).specs.items():
        tables = spec.pop("datasets")
        named = re.search("alert|long long", json.dumps(tables))
        assert named or key.startswith("rounds-of-"), key
        assert not re.search("alert|long long", json.dumps(spec)), key
        assert not {field for rows in tables.values() for row in rows for field in row if not field.isidentifier()}


def test_nothing_in_a_page_is_loaded_from_anywhere(hostile_text: str, text: str) -> None:
    for whole in (hostile_text, text):
        found = Page(whole)
        for tag, own in found.elements:
            for name in ("src", "href", "xlink:href", "data", "poster", "background", "srcset"):
                assert own.get(name, "#").startswith("#") or own[name].startswith("data:"), (tag, own)
        style = re.search(r"<style>(.*?)</style>", whole, re.DOTALL)
        assert style and not re.search(r"@import|url\(|https?:", style[1])
        assert not re.findall(r"url\((?!#)", " ".join(value for _, own in found.elements for value in own.values()))


def test_json_in_a_page_has_no_letter_that_could_end_it(hostile_text: str) -> None:
    data = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', hostile_text, re.DOTALL)
    assert len(data) == len(Page(hostile_text).specs)
    assert not [text for text in data if re.search("[<>&]", text)]


def test_a_drawing_keeps_shapes_only() -> None:
    drawing = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" width="9" onload="alert(1)"><!-- <script> --><metadata>x</metadata>'
        "<style>* {fill: url(http://x)}</style><script>alert(1)</script><a xlink:href='javascript:alert(1)'><path/></a>"
        '<defs><path id="p" d="M 0 0"/></defs><use xlink:href="#p" style="fill: #ff0000; stroke: url(http://x/y)"/>'
        '<use xlink:href="http://x/y#p"/><g clip-path="url(#c)">text</g><image xlink:href="http://x/y.png"/>'
        '<image xlink:href="data:image/svg+xml;base64,AAAA"/><image xlink:href="data:image/png;base64,AAAA"/>'
        "<foreignObject/></svg>"
    )
    assert cleaned(drawing, "map") == (
        '<svg xmlns="http://www.w3.org/2000/svg" stroke-linejoin="round" stroke-linecap="butt">'
        '<defs><path id="map-p" d="M 0 0" /></defs><use href="#map-p" fill="#ff0000" />'
        '<use /><g clip-path="url(#map-c)" /><image /><image /><image href="data:image/png;base64,AAAA" /></svg>'
    )
