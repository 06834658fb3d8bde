"""Reading a scenario: YAML, the topology file that it names, overrides from the command line, and all checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from fedsim.errors import UserError
from fedsim.files import read_text_file
from fedsim.registry import names
from fedsim.scenario.document import Document, Mark, Place, Places
from fedsim.scenario.messages import explain
from fedsim.scenario.overrides import apply
from fedsim.scenario.scalars import message_line, printable, scalar
from fedsim.scenario.schema import Scenario
from fedsim.scenario.yaml_reader import read_yaml
from fedsim.topology.readers import read_topology_data

__all__ = ["load", "written_out"]

MOST_TOPOLOGY_BYTES = 32_000_000


def load(path: Path | str, *, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario in *path*, with ``key.path=value`` *overrides* applied.

    A topology given as a path (relative to the scenario) is read and becomes part of the scenario, so that single keys
    of it can be overridden too. Raises `UserError` with the file, the line, the key, the value, the rule and the
    nearest name when anything is wrong.
    """
    document = read_yaml(Path(path))
    other_topology = [assignment for assignment in overrides if assignment.partition("=")[0].strip() == "topology"]
    document = _with_topology(apply(document, other_topology), Path(path).parent)
    document = apply(document, [assignment for assignment in overrides if assignment not in other_topology])
    try:
        return Scenario.model_validate(document.data, context=document)
    except ValidationError as error:
        raise explain(error, document, Scenario) from None


def written_out(scenario: Scenario) -> str:
    """The scenario as YAML with every default in it; `load` gives the same scenario again."""
    return yaml.dump(scenario.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def _with_topology(document: Document, folder: Path) -> Document:
    """A topology that is a path becomes the mapping in that file."""
    named = document.data.get("topology")
    if not isinstance(named, str):
        return document
    try:
        inner = _read_topology(folder / named)
    except UserError as error:
        meant = f"; for the topology of this name write {{name: {named}}}" if named in names("topologies") else ""
        raise UserError(message_line(f"{document.where(('topology',))}: topology: {error}{meant}")) from None
    places = document.places.grafted("topology", inner.places, inner.source)
    return dataclasses.replace(document, data={**document.data, "topology": inner.data}, places=places)


def _read_topology(path: Path) -> Document:
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_yaml(path, holds="a topology")
    nowhere = Places(Mark(Place(0, 0)))  # these formats' readers keep no lines
    text = read_text_file(path, what="a topology file", most_bytes=MOST_TOPOLOGY_BYTES)
    return Document(read_topology_data(path, text), printable(str(path)), nowhere)


class _Dumper(yaml.SafeDumper):
    """Quotes text that YAML 1.2 would read as something else, such as ``1e6``."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    try:
        plain = scalar(text) == text
    except ValueError:
        plain = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else "'")


_Dumper.add_representer(str, _text)
