"""A registered name is a promise: it loads, says in a sentence what it is, is used somewhere, and can be looked up."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from fedsim import registry
from fedsim.settings import Component

ROOT = Path(__file__).parents[2]


def registered(kind: str) -> tuple[str, ...]:
    """The names of *kind*; none where its package is broken, which `test_every_kind_has_names` then tells."""
    try:
        return registry.names(kind)
    except (ImportError, AttributeError):
        return ()


ENTRIES = [(kind, name) for kind in registry.KINDS for name in registered(kind)]
each_entry = pytest.mark.parametrize(("kind", "name"), ENTRIES, ids=[f"{kind}-{name}" for kind, name in ENTRIES])


@cache
def texts_that_use_names() -> str:
    """All scenarios, topologies, tests and pages, less those that list the registry, whether or not a name is used."""
    return "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("scenarios", "topologies", "tests", "docs")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".yaml", ".yml", ".json", ".py", ".md"}
        and not path.is_relative_to(ROOT / "docs/reference")
        and not path.is_relative_to(ROOT / "tests/code")
    )


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_kind_has_names(kind: str) -> None:
    assert registry.names(kind)


@each_entry
def test_every_entry_loads_under_the_name_it_gives_itself(kind: str, name: str) -> None:
    entry = registry.load(kind, name)
    assert callable(entry)
    if isinstance(entry, type) and issubclass(entry, Component):
        assert entry.model_fields["name"].default == name


@each_entry
def test_every_entry_says_in_one_sentence_what_it_is(kind: str, name: str) -> None:
    first_line = registry.first_sentence(kind, name)
    assert re.fullmatch(r"[A-Z0-9`*].{9,}\.", first_line), f"{first_line!r} is not a sentence on one line"


@each_entry
def test_every_entry_is_used_by_a_scenario_a_test_or_a_page(kind: str, name: str) -> None:
    as_a_key = rf"""\b(?:name|executor|paper_table)["']?(?:\s*[:=]\s*|\s+)["']?{name}\b"""  # name: x, --executor x
    by_hand = rf"""["']{kind}["'],\s*["']{name}["']"""  # load("kind", "x")
    used = re.search(f"{as_a_key}|{by_hand}", texts_that_use_names()) is not None
    assert used, f"no scenario, topology, test or page says `name: {name}`"


@pytest.mark.parametrize("name", [name for kind, name in ENTRIES if kind == "protocols"])
def test_every_protocol_has_a_page(name: str) -> None:
    """One of its own, or that of its family, whose title says its name."""
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in (ROOT / "docs/protocols").glob("*.md")]
    assert any(name in re.findall(r"\w+", title.casefold()) for title in titles)
