"""What pydantic found wrong becomes one message in the scenario's own words: place, key, value, rule, way out.

``scenario.yaml:12: network.cell.uplink_bps: -3 must be greater than 0``. The first errors of the file, one line each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fedsim.errors import UserError
from fedsim.scenario.document import Document, KeyPath, dotted
from fedsim.scenario.locate import Spot, locate
from fedsim.scenario.wording import WRONG_TYPE, Sentence, sentence, wrong_type

__all__ = ["explain"]

MOST_LINES = 5


@dataclass(frozen=True)
class _Finding:
    """One of pydantic's errors and where in the scenario it is."""

    details: ErrorDetails
    spot: Spot


def explain(error: ValidationError, document: Document, root: type[BaseModel]) -> UserError:
    """The message for what validating ``document.data`` as *root* found: up to five lines, in the order of the file."""
    errors = [details for details in error.errors(include_url=False) if not _is_echo(details)]
    found = [_Finding(details, locate(details["loc"], root, document.data)) for details in errors]
    sentences = dict.fromkeys(_sentences(found))
    lines = [_line(said, document) for said in sorted(sentences, key=lambda said: _position(said.path, document))]
    more = [f"(and {len(lines) - MOST_LINES} more)"] if len(lines) > MOST_LINES else []
    return UserError("\n".join(lines[:MOST_LINES] + more))


def _is_echo(details: ErrorDetails) -> bool:
    """Pydantic calls a list too short when enough items are there but some are wrong; those are reported themselves."""
    value = details["input"]
    is_list = details["type"] == "too_short" and isinstance(value, list | tuple)
    return is_list and len(value) >= details["ctx"]["min_length"]


def _position(path: KeyPath, document: Document) -> tuple[bool, int, int]:
    """The order of messages: the command line, the document, files that it names."""
    place = document.place_of(path)
    return place.origin is not None and place.line > 0, place.line, place.column


def _line(said: Sentence, document: Document) -> str:
    key = f"{dotted(said.path)}: " if said.path else ""
    return f"{document.where(said.path)}: {key}{said.text}"


def _sentences(found: Sequence[_Finding], level: int = 0) -> Iterator[Sentence]:
    """What *found* says; *level* counts the unions, from outside, whose branch has been chosen."""
    groups: dict[object, list[_Finding]] = {}
    for number, finding in enumerate(found):
        unions = finding.spot.unions
        groups.setdefault(unions[level][0] if len(unions) > level else number, []).append(finding)
    for key, group in groups.items():
        if isinstance(key, tuple):
            yield from _of_union(group, level)
        else:
            yield sentence(group[0].details, group[0].spot)


def _of_union(group: Sequence[_Finding], level: int) -> Iterator[Sentence]:
    """What the errors of one union say: those of the branch that the value was meant for, where that is clear."""
    branches: dict[str, list[_Finding]] = {}
    for finding in group:
        branches.setdefault(finding.spot.unions[level][1], []).append(finding)
    meant = [branch for branch in branches.values() if not any(_is_misfit(finding, level) for finding in branch)]
    if meant:
        yield from _sentences(min(meant, key=len), level + 1)
    else:
        spot = next((finding.spot for finding in group if finding.spot.kind), group[0].spot)
        yield wrong_type([finding.details for finding in group], spot)


def _is_misfit(finding: _Finding, level: int) -> bool:
    """A value of another kind than this branch of the union is for."""
    return finding.spot.path == finding.spot.unions[level][0] and finding.details["type"] in WRONG_TYPE
