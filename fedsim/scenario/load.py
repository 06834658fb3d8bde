"""Reading a scenario: YAML, what it extends, the topology file that it names, overrides from the command line, and all
checks.

And writing it out again, as a run folder keeps it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from fedsim.errors import Misfit, UserError, nearest
from fedsim.files import read_text_file, seen_from
from fedsim.outside import Unread
from fedsim.protocols.protocol import Protocol
from fedsim.registry import names
from fedsim.scenario.document import Document, KeyPath, Mark, SourceLocations
from fedsim.scenario.messages import explain
from fedsim.scenario.overrides import apply, path_of, put
from fedsim.scenario.scalars import kind_of, message_line, show
from fedsim.scenario.schema import Scenario, WrittenModels, WrittenNetwork, WrittenProtocols
from fedsim.scenario.yaml_reader import read_yaml
from fedsim.scenario.yaml_writer import OneLine, yaml_text
from fedsim.settings import early_stopping_validator
from fedsim.topology.explicit import Explicit
from fedsim.topology.imported import MOST_BYTES, read_topology_data

__all__ = [
    "Varied",
    "checked",
    "load",
    "load_varied",
    "read_extended",
    "read_models",
    "read_network",
    "read_protocol",
    "written_out",
]

KEY = "extends"
TOPOLOGY = "topology"
"""The key whose value may be a file, which becomes part of the scenario before any other key is changed."""
MANY_VALUES = 50_000

Part = TypeVar("Part", bound=BaseModel)


class Varied(NamedTuple):
    """A value that one point of a sweep has for a key."""

    key: str
    """Its path, as in ``--set``."""
    value: object
    origin: str
    """What messages say of where it comes from: ``--vary training.epochs=2``."""


def load(path: Path | str, *, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario in *path*, with ``key.path=value`` *overrides* applied.

    What the file *extends* is laid under it. A topology given as a path (relative to the scenario) is read and becomes
    part of the scenario, so that single keys of it can be overridden too. Raises `UserError` with the file, the line,
    the key, the value, the rule and the nearest name when anything is wrong.
    """
    return _loaded(read_extended(Path(path)), Path(path).parent, overrides, ())


def load_varied(
    path: Path | str, points: Iterable[Sequence[Varied]], *, overrides: Sequence[str] = ()
) -> Iterator[Scenario]:
    """The scenario in *path* with ``key.path=value`` *overrides*, once for each of the *points*, with its values.

    The file is read once. Raises `UserError` as `load` does; the message says which value of a point is wrong.
    """
    document = read_extended(Path(path))
    for values in points:
        yield _loaded(document, Path(path).parent, overrides, values)


def _loaded(document: Document, folder: Path, overrides: Sequence[str], values: Sequence[Varied]) -> Scenario:
    others = [assignment for assignment in overrides if assignment.partition("=")[0].strip() != TOPOLOGY]
    document = apply(document, [assignment for assignment in overrides if assignment not in others])
    document = _with_topology(_put(document, [one for one in values if one.key == TOPOLOGY]), folder)
    document = _put(apply(document, others), [one for one in values if one.key != TOPOLOGY])
    try:
        return checked(document)
    except ValidationError as error:
        raise explain(error, document, Scenario) from None


def _put(document: Document, values: Iterable[Varied]) -> Document:
    found: dict[KeyPath, Varied] = {}
    for one in values:
        path = path_of(document, one.key, one.origin)
        for length in range(1, len(path) + 1):
            if (other := found.get(path[:length])) is not None:
                raise UserError(
                    message_line(f"{one.origin}: is, or lies in, what {other.origin} changes; vary one of both")
                )
        found[path] = one
        document = put(document, one.key, one.value, one.origin)
    return document


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
    found, document = _part(WrittenNetwork, path, runs_code=False)
    topology: object = found.topology
    if isinstance(topology, Unread):
        raise UserError(f"{document.where((TOPOLOGY,))}: topology: is made by {topology.name}, which is not run here")
    return found


def read_models(path: Path) -> WrittenModels:
    """The models of the scenario that a run folder keeps in *path*. Only code that devices and models name is run.

    Raises `UserError` when they are none that this version reads.
    """
    return _part(WrittenModels, path, runs_code=True)[0]


def read_protocol(path: Path, title: str) -> Protocol:
    """The protocol of that *title* in the scenario that a run folder keeps in *path*. No code of anybody's is run.

    Raises `UserError` when it is none that this version reads, or when it has such code.
    """
    found, document = _part(WrittenProtocols, path, runs_code=False)
    for protocol in found.protocols:
        parts: tuple[object, ...] = (protocol, getattr(protocol, "objective", None))
        if not any(isinstance(part, Unread) for part in parts) and protocol.title == title:
            return protocol
    place = f"{document.where(('protocols',))}: protocols"
    raise UserError(f"{place}: none called {title!r} can be read without running code of one's own")


def _part(kind: type[Part], path: Path, *, runs_code: bool) -> tuple[Part, Document]:
    document = replace(read_yaml(path), runs_code=runs_code)
    try:
        return kind.model_validate(document.data, context=document), document
    except ValidationError as error:
        raise explain(error, document, kind) from None


def _plain(scenario: Scenario) -> dict[str, Any]:
    data = scenario.model_dump(mode="json")
    if isinstance(scenario.topology, Explicit):
        topology = data["topology"] = scenario.topology.model_dump(mode="json", exclude_none=True)
        topology["nodes"] = {name: OneLine(node) for name, node in topology["nodes"].items()}
        topology["links"] = [OneLine(link) for link in topology["links"]]
    return data


def _with_topology(document: Document, folder: Path) -> Document:
    """A topology that is a path becomes the mapping in that file."""
    named = document.data.get(TOPOLOGY)
    if not isinstance(named, str):
        return document
    try:
        inner = _read_topology(folder / named)
    except UserError as error:
        known = named in names("topologies")
        meant = f"; for the topology of this name write {{name: {named}}}" if known else seen_from(folder, named)
        raise UserError(message_line(f"{document.where((TOPOLOGY,))}: topology: {error}{meant}")) from None
    locations = document.locations.grafted(TOPOLOGY, inner.locations, inner.source)
    return replace(document, data={**document.data, TOPOLOGY: inner.data}, locations=locations)


def _read_topology(path: Path) -> Document:
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_yaml(path, holds="a topology")
    nowhere = SourceLocations(Mark(0, 0))  # these formats' readers keep no lines
    text = read_text_file(path, what="a topology file", most_bytes=MOST_BYTES)
    return Document(read_topology_data(path, text), str(path), nowhere)


def read_extended(path: Path) -> Document:
    """The document in *path*, laid over those that it extends (``extends: other.yaml``), one after the other.

    They stand in the same folder. Mappings are laid over each other key by key, unless they name different things:
    ``{name: femnist}`` over ``{name: glyphs}`` begins anew, and so does ``{path: my_data.py:Mine}``. Everything else,
    lists too, is replaced. Errors are told with the file that the value stands in. Raises `UserError` when
    one of them cannot be read, stands elsewhere, or extends itself.
    """
    layers = [read_yaml(path)]
    while KEY in layers[-1].data:
        layers.append(read_yaml(_named(layers[-1], [Path(layer.source) for layer in layers])))
    document = layers.pop()
    while layers:
        document = _laid_over(document, layers.pop())
    return document


def _named(document: Document, before: list[Path]) -> Path:
    """The file that *document* extends."""
    name = document.data[KEY]
    where = document.where((KEY,))

    def refusal(problem: str) -> UserError:
        return UserError(message_line(f"{where}: {KEY}: {problem}"))

    if not isinstance(name, str):
        raise refusal(f"{kind_of(name)} ({show(name)}) is no file name")
    if not name or Path(name).name != name:
        raise refusal(f"{show(name)} must be the name of a file in the same folder, without a way to it")
    path = Path(document.source).with_name(name)
    if path in before:
        raise refusal(f"{show(name)} is the scenario itself, or extends it")
    if not os.path.isfile(path):  # unlike Path.is_file, False also for what is no name of a file
        beside = sorted(other.name for other in path.parent.glob("*.y*ml"))
        raise refusal(f"{show(name)} is no file beside it{nearest(name, beside)}")
    return path


def _laid_over(below: Document, above: Document) -> Document:
    own = {key: value for key, value in above.data.items() if key != KEY}
    root = _from(below.source, below.locations.root)
    data, mark = _merged_mappings(below.data, root, own, above.locations.root)
    return replace(above, data=data, locations=SourceLocations(mark))


def _from(source: str | None, mark: Mark) -> Mark:
    """*mark* as one of the document *source*, unless it says where it is from."""
    return mark if mark.origin is not None else mark._replace(origin=source)


def _merged(below: object, below_mark: Mark, above: object, above_mark: Mark) -> tuple[object, Mark]:
    if isinstance(below, dict) and isinstance(above, dict) and _is_more_of(below, above):
        return _merged_mappings(below, below_mark, above, above_mark)
    return above, above_mark


def _is_more_of(below: dict[str, object], above: dict[str, object]) -> bool:
    """Whether *above* names no other thing than *below*."""
    is_key_of_a_name = {"name", "path"} <= below.keys() and "name" not in above
    return is_key_of_a_name or _thing(above) in (None, _thing(below))


def _thing(mapping: dict[str, object]) -> object:
    """What says which component it is: the name, or the path of a class."""
    path = mapping.get("path")
    return mapping.get("name", path if isinstance(path, str) and ":" in path else None)


def _merged_mappings(
    below: dict[str, object], below_mark: Mark, above: dict[str, object], above_mark: Mark
) -> tuple[dict[str, object], Mark]:
    data = dict(below)
    parts: dict[str | int, Mark] = {key: _from(below_mark.origin, mark) for key, mark in below_mark.parts.items()}
    for key, value in above.items():
        mark = above_mark.parts.get(key, above_mark)
        if key in below:
            value, mark = _merged(below[key], parts.get(key, below_mark), value, mark)
        data[key], parts[key] = value, mark
    return data, above_mark._replace(parts=parts)


def checked(document: Document) -> Scenario:
    """The scenario that *document* describes. Raises pydantic's `ValidationError`, the list of its mistakes.

    A script can make a hundred thousand mistakes at once, and each of them takes a kilobyte where it is recorded. So
    the check of a document of very many values does not go on in a list or mapping after the first wrong item.
    """
    if not _has_more_values(document.data, MANY_VALUES):
        return Scenario.model_validate(document.data, context=document)
    scenario: Scenario = early_stopping_validator(Scenario).validate_python(document.data, context=document)
    return scenario


def _has_more_values(data: object, most: int) -> bool:
    pending, found = [data], 0
    while pending and found <= most:
        value = pending.pop()
        found += 1
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return found > most
