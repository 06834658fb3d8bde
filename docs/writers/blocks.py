"""The generated parts of pages that people write: code, files, tables, and what commands answer."""

from __future__ import annotations

import contextlib
import csv
import importlib
import inspect
import io
import shlex
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import yaml

from fedsim import cli, registry
from writers import cases, intervals, scenarios, validation
from writers.markdown import ROOT, table


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
    "scenarios": scenarios.all_of,
    "cases": cases.table_of,
    "ended": cases.ended,
    "intervals": lambda _: intervals.interval_table(),
    "validation": lambda _: validation.point_table(),
}
