"""The pages of components hold every key of every component: each once, where its component's section leads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest
from pages import ROOT
from writers import keys, layout, markdown

from fedsim import registry

KINDS = tuple(registry.KINDS)
LINK = re.compile(r"\[[^\]]*\]\((?P<page>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)")
CELL = re.compile(r"(?<!\\)\|")


class Section(NamedTuple):
    """What stands under a heading, up to the next one."""

    text: str
    rows: dict[str, str]  # of the table, as they are written, by key

    def links(self, page: str) -> Iterator[tuple[str, str]]:
        """The pages and headings that it leads to outside its table."""
        yield from leads_to("\n".join(line for line in self.text.splitlines() if not line.startswith("|")), page)


def leads_to(text: str, page: str) -> Iterator[tuple[str, str]]:
    for match in LINK.finditer(text):
        path = (ROOT / page).parent / match["page"] if match["page"] else ROOT / page
        yield str(path.resolve().relative_to(ROOT)), match["anchor"] or ""


@cache
def sections(page: str) -> dict[str, Section]:
    """A page by the addresses of its headings."""
    _, *parts = re.split(r"^#+ (?=.)", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {}
    for part in parts:
        title, _, text = part.partition("\n")
        address = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        assert address not in found, f"{page} has the heading {title!r} twice"
        rows = [line for line in text.splitlines() if line.startswith("| `")]
        found[address] = Section(text, {CELL.split(row)[1].strip(" `"): row for row in rows})
    return found


def tables_of(kind: str, name: str) -> list[Section]:
    """The component's own section, and the shared ones that it names, in the order in which they hold."""
    page = page_of(kind)
    own = sections(page)[name]
    shared = [sections(path)[address] for path, address in own.links(page)]
    return [own, *reversed(shared)]


def page_of(kind: str) -> str:
    return f"docs/reference/components/{kind}.md"


def expected_row(key: str, settings: type, page: str) -> str:
    """A key as its class has it: with its type, default and meaning."""
    return markdown.relative(markdown.table([], [keys.key_row(key, settings)]).splitlines()[-1], page)


def every_component() -> list[tuple[str, str]]:
    return [(kind, name) for kind in KINDS for name in registry.names(kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_every_component_is_on_the_page_of_its_kind(kind: str) -> None:
    page = page_of(kind)
    for name, component in layout.components(kind).items():
        tables = tables_of(kind, name)
        rows = {key: row for section in reversed(tables) for key, row in section.rows.items()}
        expected = {key: expected_row(key, component, page) for key in component.model_fields if key != "name"}
        assert rows == expected, f"{kind} {name}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_inside_a_key_is_where_the_row_leads(kind: str) -> None:
    """Rows lead to their sections from page to page: from a protocol's memory to that of its exchange."""
    seen: set[tuple[str, str]] = set()
    for name, component in layout.components(kind).items():
        waiting = [
            (page_of(kind), row, component) for section in tables_of(kind, name) for row in section.rows.values()
        ]
        while waiting:
            page, row, settings = waiting.pop()
            key = CELL.split(row)[1].strip(" `")
            for _, inner in layout.settings_inside(key, layout.hints(settings)[key]):
                there = [place for place in leads_to(CELL.split(row)[2], page) if place[1]]
                assert len(there) == 1, f"{row} of {page} leads to no section"
                path, address = there[0]
                found = sections(path)[address].rows
                assert found == {each: expected_row(each, inner, path) for each in inner.model_fields}
                if there[0] not in seen:
                    seen.add(there[0])
                    waiting += [(path, each, inner) for each in found.values()]


def test_what_components_share_is_written_once() -> None:
    """A component's own table has no row of the shared tables that it names."""
    again = [
        f"{kind} {name} {key}"
        for kind in KINDS
        for name in layout.components(kind)
        for own, *shared in [tables_of(kind, name)]
        for key, row in own.rows.items()
        if any(each.rows.get(key) == row for each in shared)
    ]
    assert again == []


@pytest.mark.parametrize(("kind", "name"), every_component())
def test_every_component_is_on_its_page_with_its_sentence(kind: str, name: str) -> None:
    assert sections(page_of(kind))[name].text.strip().startswith(registry.first_sentence(kind, name))


def test_the_index_leads_to_every_kind_and_every_component() -> None:
    index = (ROOT / "docs/reference/components.md").read_text(encoding="utf-8")
    there = set(leads_to(index, "docs/reference/components.md"))
    assert {(page_of(kind), "") for kind in KINDS} | {
        (page_of(kind), name) for kind, name in every_component()
    } <= there
