"""What pydantic found wrong becomes one message in the scenario's own words: place, key, value, rule, way out.

``scenario.yaml:12: network.cell.uplink_bps: -3 must be greater than 0``. The first errors of the file, one line each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    errors = error.errors(include_url=False)
    found = [_Finding(details, locate(details["loc"], root, document.data)) for details in errors]
    sentences = dict.fromkeys(said for group in _by_union(found) for said in _of_union(group))
    lines = [_line(said, document) for said in sorted(sentences, key=lambda said: _position(said.path, document))]
    more = [f"(and {len(lines) - MOST_LINES} more)"] if len(lines) > MOST_LINES else []
    return UserError("\n".join(lines[:MOST_LINES] + more))


def _position(path: KeyPath, document: Document) -> tuple[int, int]:
    place = document.place_of(path)
    return place.line, place.column


def _line(said: Sentence, document: Document) -> str:
    key = f"{dotted(said.path)}: " if said.path else ""
    return f"{document.where(said.path)}: {key}{said.text}"


def _by_union(found: Iterable[_Finding]) -> list[list[_Finding]]:
    """Errors of the branches of one union together, every other error alone."""
    groups: dict[object, list[_Finding]] = {}
    for number, finding in enumerate(found):
        groups.setdefault(number if finding.spot.union is None else finding.spot.union, []).append(finding)
    return list(groups.values())


def _of_union(group: Sequence[_Finding]) -> list[Sentence]:
    """What the errors of one union say: those of the branch that the value was meant for, where that is clear."""
    branches: dict[str, list[_Finding]] = {}
    for finding in group:
        branches.setdefault(finding.spot.branch, []).append(finding)
    meant = [branch for branch in branches.values() if not any(_is_misfit(finding) for finding in branch)]
    if not meant:
        spot = next((finding.spot for finding in group if finding.spot.kind), group[0].spot)
        return [wrong_type([finding.details for finding in group], spot)]
    return [sentence(finding.details, finding.spot) for finding in min(meant, key=len)]


def _is_misfit(finding: _Finding) -> bool:
    """A value of another kind than this branch of the union is for."""
    return finding.spot.path == finding.spot.union and finding.details["type"] in WRONG_TYPE
