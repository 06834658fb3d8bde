"""Writes what documentation can take from the code: docs/reference/, and the generated parts of the other pages.

A generated block stands between two comments::

    <!-- generated: source fedsim.protocols.round_trip:round_trip -->
    <!-- end of generated -->

In a fenced block of the language ``console``, lines that begin with ``$ fedsim`` are executed, and the lines below each
become what it answers.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib
import inspect
import io
import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from importlib import resources
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types as at
import yaml
from pydantic import AllowInfNan, JsonValue
from pydantic.fields import FieldInfo

from fedsim import cli, registry
from fedsim.scenario.schema import Scenario
from fedsim.settings import Component, OneOf, Settings

ROOT = Path(__file__).resolve().parents[1]
NOTE = "<!-- Written by docs/generate.py (`make docs`); change the code's docstrings instead. -->\n"
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"(?P<begin><!-- generated: (?P<what>[^>]*?) -->\n).*?(?P<end><!-- end of generated -->)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Every file that this script writes, with the content that it should have now."""
    written = {
        ROOT / "docs/reference/scenario.md": scenario_page(),
        ROOT / "docs/reference/components.md": components_page(),
        ROOT / "docs/reference/cli.md": cli_page(),
    }
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = "" if path in written else path.read_text(encoding="utf-8")
        if text.startswith("<!-- walkthrough -->"):
            continue  # its commands train: main() writes it, and a test of its own reads it
        if BLOCK.search(text) or CONSOLE.search(text):
            text = BLOCK.sub(lambda match: match["begin"] + block(match["what"]) + match["end"], text)
            written[path] = CONSOLE.sub(lambda match: answers(match[0]), text)
    return written


# -- pages ------------------------------------------------------------------------------------------------------------


def scenario_page() -> str:
    """The keys of a scenario, section by section."""
    text = (
        f"{NOTE}# Keys of a scenario\n\n"
        "What may stand under `topology`, `data`, `model`, `protocols` and wherever else a `name` chooses between "
        "components is on [another page](components.md); a `path` in place of the name chooses "
        "[a class of your own](../add_a_protocol.md#5-from-outside-the-package). Unknown keys are errors. The end of a "
        "key's name is its unit: "
        "`_s` seconds, `_bytes` bytes, `_bps` bit/s, `_m` metres, `flops_per_s` operations per second. "
        "How to write one: [the guide](../scenarios.md).\n"
    )
    for path, section in sections("", Scenario):
        title = f"`{path}`" if path else "The whole scenario"
        text += f"\n## {title}\n\n{paragraph(section)}\n\n{keys(section)}"
    return text


def components_page() -> str:
    """All registered names, by kind, each with its sentence and its own keys."""
    text = (
        f"{NOTE}# Components\n\n"
        "Everything that has a name: `fedsim list` prints the same sentences. A component is chosen by its `name`, and "
        "its other keys stand beside it: `{name: fedprox, fraction: 0.25, mu: 0.1}`.\n"
    )
    for kind in registry.KINDS:
        text += f"\n## {kind}\n"
        for name in registry.names(kind):
            entry = registry.load(kind, name)
            text += f"\n### `{name}`\n\n{registry.first_sentence(kind, name)}\n"
            if isinstance(entry, type) and issubclass(entry, Component):
                text += f"\n{keys(entry)}"
                for path, section in sections(name, entry):
                    if section is not entry and section not in SCENARIO_SECTIONS:
                        text += f"\n#### `{path}`\n\n{paragraph(section)}\n\n{keys(section)}"
    return text


def cli_page() -> str:
    """The commands and their options, from the parser itself."""
    _, commands = cli._parser()
    text = (
        f"{NOTE}# Command line\n\n"
        "Exit status: 0 done, 1 failed, 2 the input is wrong (one message says where, what, the rule and the way out), "
        "130 interrupted. Results go to standard output, progress and remarks to standard error. "
        "`python -m fedsim` is the same command.\n"
    )
    for name, parser in commands.items():
        actions = [action for action in parser._actions if action.dest != "help"]
        usage = " ".join(["fedsim", name, *map(usage_of, actions)])
        text += f"\n## `fedsim {name}`\n\n{parser.description}\n\n```text\n{usage}\n```\n".replace("%%", "%")
        if actions:
            rows = ([f"`{' '.join(spelling(action))}`", (action.help or "") % vars(action)] for action in actions)
            text += f"\n{table(['argument', 'meaning'], rows)}"
    return text


def usage_of(action: argparse.Action) -> str:
    words = " ".join(spelling(action))
    if not action.option_strings:
        return {"+": f"{words}...", "?": f"[{words}]"}.get(str(action.nargs), words)
    return f"[{words}]" + ("..." if isinstance(action, argparse._AppendAction) else "")


def spelling(action: argparse.Action) -> list[str]:
    """The option and what follows it."""
    words = list(action.option_strings[-1:])
    if action.nargs == 0:
        return words
    return [*words, "|".join(action.choices) if action.choices else str(action.metavar or action.dest)]


# -- blocks -----------------------------------------------------------------------------------------------------------


def block(what: str) -> str:
    """The content of a generated block."""
    kind, _, argument = what.partition(" ")
    return BLOCKS[kind](argument) + "\n"


def source(name: str) -> str:
    """The code of ``package.module:thing``, a function or a class."""
    module, _, thing = name.partition(":")
    found = getattr(importlib.import_module(module), thing)
    return f"```python\n{inspect.getsource(found)}```\n"


def file(path: str) -> str:
    """A file of the repository, in full."""
    return f"```{Path(path).suffix[1:]}\n{(ROOT / path).read_text(encoding='utf-8')}```\n"


def csv_table(name: str) -> str:
    """A table that comes with the package: ``package file.csv``."""
    package, _, path = name.partition(" ")
    with (resources.files(package) / path).open(encoding="utf-8") as lines:
        rows = list(csv.reader(lines))
    return table(rows[0], rows[1:])


def numbers(wanted: str) -> str:
    """A table of the repository, ``path.csv``, or its rows with one value in a column: ``path.csv column=value``."""
    path, _, only = wanted.partition(" ")
    titles, *rows = csv.reader((ROOT / path).read_text(encoding="utf-8").splitlines())
    if only:
        column, _, value = only.partition("=")
        place = titles.index(column)
        rows = [row[:place] + row[place + 1 :] for row in rows if row[place] == value]
        titles.pop(place)
        assert rows, f"no row of {path} has {only}"
    filled = [place for place in range(len(titles)) if any(row[place] for row in rows)]
    return table([titles[place] for place in filled], ([row[place] for place in filled] for row in rows))


def model_table(listed: str) -> str:
    """A row for each model that *listed*, a YAML list, names, with the shape of a sample and the number of classes."""
    rows = []
    for entry in yaml.safe_load(listed):
        shape, classes = tuple(entry.pop("sample")), entry.pop("classes")
        settings = registry.load("models", entry["name"]).model_validate(entry)
        sizes = settings.table(shape, classes)
        options = ", ".join(f"{key}: {value}" for key, value in entry.items() if key != "name")
        rows.append(
            [
                f"`{entry['name']}`" + (f" {options}" if options else ""),
                " x ".join(map(str, shape)),
                *(f"{number:,}" for number in (sizes.parameters(), sizes.parameters("classifier"))),
                f"{sizes.bytes() / 1e6:.3g} MB",
                f"{sizes.training_flops_per_sample / 1e6:,.3g} MFLOP",
            ]
        )
    titles = ["model", "sample", "parameters", "of these classifier", "on the wire", "training on a sample"]
    return table(titles, rows)


def answers(console: str) -> str:
    """A console's commands, each with what it prints today."""
    text = ""
    for command in (line for line in console.splitlines() if line.startswith("$ fedsim ")):
        printed = io.StringIO()
        with contextlib.chdir(ROOT), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            cli.main(shlex.split(command)[2:])
        text += f"{command}\n{printed.getvalue()}"
    return text


BLOCKS: dict[str, Callable[[str], str]] = {
    "source": source,
    "file": file,
    "csv": csv_table,
    "numbers": numbers,
    "models": model_table,
}


# -- keys -------------------------------------------------------------------------------------------------------------


def sections(path: str, settings: type[Settings]) -> Iterator[tuple[str, type[Settings]]]:
    """*settings* and all settings inside it that are no components, each once, with the path of its keys."""
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


def keys(settings: type[Settings]) -> str:
    """A table of the keys: a class's own first, then those that it shares with others."""
    own = inspect.get_annotations(settings)
    rows = [
        [f"`{key}`", type_text(hints(settings)[key]), default_text(field), one_line(field.description or "")]
        for key, field in sorted(settings.model_fields.items(), key=lambda item: item[0] not in own)
        if not (key == "name" and issubclass(settings, Component))
    ]
    return table(["key", "value", "default", "meaning"], rows) if rows else "No keys of its own.\n"


def hints(settings: type[Settings]) -> dict[str, Any]:
    known = get_type_hints(settings, include_extras=True)
    return {key: known[key] for key in settings.model_fields}


def type_text(hint: Any) -> str:
    """What a key takes, in words.

    >>> from fedsim.settings import Count, Fraction, Several
    >>> type_text(Count), type_text(Several[Fraction])
    ('whole number, at least 1, at most 1,000,000,000', 'list of: number, above 0, at most 1')
    """
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        for extra in extras:
            if isinstance(extra, OneOf):
                return f"one of the [{extra.kind}](components.md#{extra.kind})"
        words = [rule for extra in extras for rule in rules(extra)]
        if get_origin(inner) is tuple and NOT_EMPTY in words:
            return type_text(inner).replace("list", f"list, {NOT_EMPTY},", 1)
        return ", ".join([type_text(inner), *sorted(words, key=MAY_BE_INFINITE.__eq__)])
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(type_text(part) for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is Literal:
        return " or ".join(f"`{word}`" for word in get_args(hint))
    if get_origin(hint) is tuple:
        first, *others = get_args(hint)
        return f"list of: {type_text(first)}" if others == [...] else f"list of {1 + len(others)}: {type_text(first)}"
    if get_origin(hint) is dict:
        return f"mapping of names to: {type_text(get_args(hint)[1])}"
    if hint is JsonValue:
        return "anything that JSON can hold"
    if issubclass(hint, Enum):
        return " or ".join(f"`{member.value}`" for member in hint)
    if issubclass(hint, Settings):
        return f"[mapping](scenario.md#{anchor(SCENARIO_SECTIONS[hint])})" if hint in SCENARIO_SECTIONS else "mapping"
    return {str: "text", bool: "`true` or `false`", int: "whole number", float: "number"}[hint]


NOT_EMPTY = "not empty"
MAY_BE_INFINITE = "may be `.inf`"


def rules(extra: Any) -> Iterator[str]:
    """The rules that a type's annotation adds."""
    parts: Iterable[Any] = extra if isinstance(extra, at.GroupedMetadata) else [extra]
    for part in parts:
        match part:
            case at.Gt(gt=limit):
                yield f"above {limit:,}"
            case at.Ge(ge=limit):
                yield f"at least {limit:,}"
            case at.Lt(lt=limit):
                yield f"below {limit:,}"
            case at.Le(le=limit):
                yield f"at most {limit:,.0f}"
            case at.MinLen(min_length=1):
                yield NOT_EMPTY
            case AllowInfNan():
                yield MAY_BE_INFINITE


def default_text(field: FieldInfo) -> str:
    """The default as a scenario would write it."""
    if field.is_required():
        return "**needed**"
    if field.default_factory_takes_validated_data:  # other keys decide, and the factory says which
        made = one_line(inspect.getdoc(field.default_factory) or "")
        return made[:1].lower() + made[1:].rstrip(".")
    value = field.get_default(call_default_factory=True)
    return "none" if value is None else f"`{yaml_text(value)}`"


def yaml_text(value: Any) -> str:
    if isinstance(value, Component):
        return f"{{name: {value.name}}}"
    if isinstance(value, Settings):
        return "{}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(yaml_text, value))}]"
    if isinstance(value, float) and math.isinf(value):
        return ".inf"
    if isinstance(value, float) and value >= 1e6:
        return f"{value:g}"
    return value if isinstance(value, str) and value else json.dumps(value)


# -- Markdown ---------------------------------------------------------------------------------------------------------


def table(titles: list[str], rows: Iterable[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def anchor(title: str) -> str:
    """The address of a heading inside its page, as GitHub makes it."""
    return re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-")


def one_line(text: str) -> str:
    """A docstring as one line of Markdown."""
    return " ".join(text.replace("``", "`").split())


def paragraph(settings: type[Settings]) -> str:
    return one_line((settings.__doc__ or "").split("\n\n")[0])


SCENARIO_SECTIONS = {section: path for path, section in sections("", Scenario)}


def main() -> None:
    import walkthrough  # beside this file, which is on the path only where this is the program that runs

    for path, text in {**pages(), **walkthrough.pages()}.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
