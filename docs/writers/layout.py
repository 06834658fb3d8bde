"""Which keys stand in which section of which reference page: each key and each nested section once.

A page of components has a section for each set of components that share a base class with keys, and one for each
component with the keys that are its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from fedsim import registry
from fedsim.scenario.schema import Scenario
from fedsim.settings import Component, OneOf, Settings
from writers.markdown import anchor, listed, quoted

SCENARIO = "docs/reference/scenario.md"
INDEX = "docs/reference/components.md"


def page_of(kind: str) -> str:
    return f"docs/reference/components/{kind}.md"


# -- settings inside settings -----------------------------------------------------------------------------------------


def sections(
    path: str, settings: type[Settings], keys: Collection[str] | None = None
) -> Iterator[tuple[str, type[Settings]]]:
    """*settings* and all settings inside it that are no components, each once, with the path of its keys.

    With *keys*, only what is inside these keys of *settings*.
    """
    seen: set[type[Settings]] = set()
    waiting = [(path, settings)]
    while waiting:
        path, section = waiting.pop(0)
        if section in seen:
            continue
        seen.add(section)
        yield path, section
        inner = [
            (f"{path}.{step}".removeprefix("."), found)
            for key, hint in hints(section).items()
            if section is not settings or keys is None or key in keys
            for step, found in settings_inside(key, hint)
        ]
        waiting[:0] = inner


def settings_inside(key: str, hint: Any) -> Iterator[tuple[str, type[Settings]]]:
    if isinstance(hint, type) and issubclass(hint, Settings):
        if not issubclass(hint, Component):
            yield key, hint
        return
    parts = get_args(hint)
    if get_origin(hint) is Annotated:
        parts = () if any(isinstance(extra, OneOf) for extra in parts[1:]) else parts[:1]
    ending = {dict: ".<name>", tuple: "[]"}.get(get_origin(hint), "")
    for part in parts:
        yield from settings_inside(f"{key}{ending}", part)


def hints(settings: type[Settings]) -> dict[str, Any]:
    known = get_type_hints(settings, include_extras=True)
    return {key: known[key] for key in settings.model_fields}


# -- components -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """The keys in one section of a page, each with the class that says what it is, and the sections inside it."""

    title: str
    rows: tuple[tuple[str, type[Settings]], ...]
    inner: tuple[tuple[str, type[Settings]], ...] = ()
    names: tuple[str, ...] = ()
    """The components that take them."""


def components(kind: str) -> dict[str, type[Component]]:
    """Those of *kind* that have keys, by name."""
    loaded = {name: registry.load(kind, name) for name in registry.names(kind)}
    return {name: one for name, one in loaded.items() if isinstance(one, type) and issubclass(one, Component)}


@cache
def shared_keys(kind: str) -> list[Keys]:
    """The keys that several components of *kind* take from the same base classes, those of most components first."""
    groups: dict[tuple[str, ...], list[type[Settings]]] = {}
    for base, names in users(kind).items():
        if len(names) > 1:
            groups.setdefault(names, []).append(base)
    found = []
    for names in sorted(groups, key=len, reverse=True):
        rows = {
            key: base
            for base in reversed(groups[names])
            for key in own_keys(base)
            if any(owner(components(kind)[name], key) is base for name in names)
        }
        inner = [each for key, base in rows.items() for each in list(sections("", base, [key]))[1:]]
        if rows:
            found.append(Keys(f"Keys of {who(kind, names)}", tuple(rows.items()), tuple(inner), names))
    return found


@cache
def keys_of_its_own(kind: str, name: str) -> Keys:
    """The keys that *name* shares with nobody, or has in another form than those with whom it shares them."""
    component = components(kind)[name]
    taken = [key for key in component.model_fields if key != "name" and len(users(kind)[owner(component, key)]) == 1]
    rows = sorted(((key, component) for key in taken), key=lambda row: owner(component, row[0]) is not component)
    return Keys(f"`{name}`", tuple(rows), tuple(sections(name, component, taken))[1:], (name,))


def users(kind: str) -> dict[type[Settings], tuple[str, ...]]:
    """The classes of settings with keys that components of *kind* are made of, and the components made of each."""
    found: dict[type[Settings], tuple[str, ...]] = {}
    for name, component in components(kind).items():
        for base in component.__mro__:
            if issubclass(base, Settings) and own_keys(base):
                found[base] = (*found.get(base, ()), name)
    return found


def own_keys(settings: type[Settings]) -> list[str]:
    return [key for key in inspect.get_annotations(settings) if key in settings.model_fields and key != "name"]


def owner(component: type[Settings], key: str) -> type[Settings]:
    """The class that says what *key* of *component* is."""
    return next(base for base in component.__mro__ if issubclass(base, Settings) and key in own_keys(base))


def others_than(shared: Keys, kind: str, key: str) -> list[str]:
    """Those that *shared* is for and in which *key* is another class's."""
    base = dict(shared.rows)[key]
    return [name for name in shared.names if owner(components(kind)[name], key) is not base]


def who(kind: str, names: Sequence[str]) -> str:
    """Some components of *kind*, in few words."""
    everybody = registry.names(kind)
    others = [name for name in everybody if name not in names]
    if 2 * len(others) < len(names):
        return f"all but {_in_runs(others, everybody)}" if others else "all"
    return _in_runs(names, everybody)


def _in_runs(names: Sequence[str], everybody: Sequence[str]) -> str:
    """*names* in their order; of four and more that follow each other among *everybody*, the first and the last."""
    runs: list[list[str]] = []
    for name in names:
        if runs and everybody.index(name) == everybody.index(runs[-1][-1]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return listed([word for run in runs for word in ([f"`{run[0]}` to `{run[-1]}`"] if len(run) > 3 else quoted(run))])


# -- where a section stands -------------------------------------------------------------------------------------------


@cache
def scenario_sections() -> dict[type[Settings], str]:
    return {section: path for path, section in sections("", Scenario)}


@cache
def places() -> dict[type[Settings], str]:
    """Where the keys of each class are written: a page and, after ``#``, a heading of it.

    What several kinds have inside them stands with the last of these: parts are registered after what they are part of.
    """
    found: dict[type[Settings], str] = {}
    for kind in registry.KINDS:
        here = {component: name for name, component in components(kind).items()}
        for keys in (*shared_keys(kind), *(keys_of_its_own(kind, name) for name in components(kind))):
            for path, section in keys.inner:
                here.setdefault(section, path)
        found |= {section: f"/{page_of(kind)}#{anchor(title)}" for section, title in here.items()}
    return found | {section: f"/{SCENARIO}#{anchor(path)}" for section, path in scenario_sections().items()}
