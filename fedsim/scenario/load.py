"""Reading a scenario: YAML, what it extends, the topology file that it names, overrides from the command line, and all
checks.

And writing it out again, as a run folder keeps it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedsim.errors import Misfit, UserError
from fedsim.files import read_text_file
from fedsim.outside import Unread
from fedsim.registry import names
from fedsim.scenario.checking import checked
from fedsim.scenario.document import Document, Mark, SourceLocations
from fedsim.scenario.extending import read_extended
from fedsim.scenario.messages import explain
from fedsim.scenario.overrides import apply
from fedsim.scenario.scalars import message_line
from fedsim.scenario.schema import Scenario, WrittenNetwork
from fedsim.scenario.yaml_reader import read_yaml
from fedsim.scenario.yaml_writer import OneLine, yaml_text
from fedsim.topology.explicit import Explicit
from fedsim.topology.readers import MOST_BYTES, read_topology_data

__all__ = ["load", "read_network", "written_out"]


def load(path: Path | str, *, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario in *path*, with ``key.path=value`` *overrides* applied.

    What the file *extends* is laid under it. A topology given as a path (relative to the scenario) is read and becomes
    part of the scenario, so that single keys of it can be overridden too. Raises `UserError` with the file, the line,
    the key, the value, the rule and the nearest name when anything is wrong.
    """
    document = read_extended(Path(path))
    other_topology = [assignment for assignment in overrides if assignment.partition("=")[0].strip() == "topology"]
    document = _with_topology(apply(document, other_topology), Path(path).parent)
    document = apply(document, [assignment for assignment in overrides if assignment not in other_topology])
    try:
        return checked(document)
    except ValidationError as error:
        raise explain(error, document, Scenario) from None


def written_out(scenario: Scenario) -> str:
    """The scenario as YAML with every default in it; `load` gives the same scenario again.

    Only nodes and links that are listed one by one go without what they do not have. Raises `UserError` for what no
    file can hold, or `load` would not read: a million sensors in a list, each with an entry of its own.
    """
    with scenario.about():
        try:
            return yaml_text(_plain(scenario))
        except Misfit as error:
            raise Misfit(f"cannot be kept in a run folder: {error}", *error.key) from error


def read_network(path: Path) -> WrittenNetwork:
    """The network of the scenario that a run folder keeps in *path*. No code is run that the scenario names.

    Raises `UserError` when it is none that this version reads, or when only such code knows the topology.
    """
    document = dataclasses.replace(read_yaml(path), runs_code=False)
    try:
        found = WrittenNetwork.model_validate(document.data, context=document)
    except ValidationError as error:
        raise explain(error, document, WrittenNetwork) from None
    topology: object = found.topology
    if isinstance(topology, Unread):
        raise UserError(f"{document.where(('topology',))}: topology: is made by {topology.name}, which is not run here")
    return found


def _plain(scenario: Scenario) -> dict[str, Any]:
    data = scenario.model_dump(mode="json")
    if isinstance(scenario.topology, Explicit):
        topology = data["topology"] = scenario.topology.model_dump(mode="json", exclude_none=True)
        topology["nodes"] = {name: OneLine(node) for name, node in topology["nodes"].items()}
        topology["links"] = [OneLine(link) for link in topology["links"]]
    return data


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
    locations = document.locations.grafted("topology", inner.locations, inner.source)
    return dataclasses.replace(document, data={**document.data, "topology": inner.data}, locations=locations)


def _read_topology(path: Path) -> Document:
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_yaml(path, holds="a topology")
    nowhere = SourceLocations(Mark(0, 0))  # these formats' readers keep no lines
    text = read_text_file(path, what="a topology file", most_bytes=MOST_BYTES)
    return Document(read_topology_data(path, text), str(path), nowhere)
