"""What pydantic found wrong becomes one message in the scenario's own words: place, key, value, rule, way out.

``scenario.yaml:12: network.cell.uplink_bps: -3 must be greater than 0``. The first errors of the file, one line each;
keys that are missing come last, as they may be there under a wrong name, and those of one mapping share a line. Of very
many errors, as a script can make them, only the first that pydantic names are looked at.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fedsim.errors import UserError
from fedsim.scenario.document import Document, dotted
from fedsim.scenario.locate import Spot, locate
from fedsim.scenario.scalars import message_line
from fedsim.scenario.wording import WRONG_TYPE, Sentence, sentence, wrong_type

__all__ = ["explain"]

_IN_BRACKETS = re.compile(r": write (\[.*\]|\{.*\})$")

MOST_LINES = 5
MOST_ERRORS = 1_000


@dataclass(frozen=True)
class _Finding:
    """One of pydantic's errors and where in the scenario it is."""

    details: ErrorDetails
    spot: Spot


def explain(error: ValidationError, document: Document, root: type[BaseModel]) -> UserError:
    """The message for what validating ``document.data`` as *root* found: up to five lines.

    First what is there and wrong, in the order of the file, and then in the same order what is missing.
    """
    errors = [details for details in error.errors(include_url=False) if not _is_echo(details)]
    first = errors[:MOST_ERRORS]
    found = [_Finding(details, locate(details["loc"], root, document.data)) for details in first]
    sentences = sorted(_joined(_sentences(found)), key=lambda said: _order(said, document))
    lines = [_line(said, document) for said in sentences[:MOST_LINES]]
    others = len(sentences) - len(lines) + len(errors) - len(first)
    more = [f"(and {others} more)"] if others else []
    return UserError("\n".join(lines + more))


def _is_echo(details: ErrorDetails) -> bool:
    """Whether it only follows from other errors, which are reported themselves: a list is called too short when enough
    items are there but some are wrong, and a default that other keys decide cannot be made when one of them is wrong.
    """
    if details["type"] == "default_factory_not_called":
        return True
    value = details["input"]
    is_list = details["type"] == "too_short" and isinstance(value, list | tuple)
    return is_list and len(value) >= details["ctx"]["min_length"]


def _joined(sentences: Iterable[Sentence]) -> list[Sentence]:
    """The *sentences* once each, with one for all keys that are missing in one mapping."""
    alike: dict[object, list[Sentence]] = {}
    for said in dict.fromkeys(sentences):
        alike.setdefault(said if said.missing is None else said.path, []).append(said)
    return [group[0] if len(group) == 1 else _all_missing(group) for group in alike.values()]


def _all_missing(group: Sequence[Sentence]) -> Sentence:
    keys = ", ".join(str(said.missing) for said in group)
    return group[0]._replace(text=f"needs the keys {keys}")


def _order(said: Sentence, document: Document) -> tuple[bool, bool, int, int]:
    """Missing keys come last; among themselves: the command line, the document, files that it names."""
    location = document.location_of(said.path)
    return said.missing is not None, location.origin is not None and location.line > 0, location.line, location.column


def _line(said: Sentence, document: Document) -> str:
    place, path, text = document.where(said.path), dotted(said.path), f"{said.text}{said.way}"
    found = _IN_BRACKETS.search(text)
    if found and place.startswith("--set ") and '"' not in path:  # which would be no path there
        override = shlex.quote(f"{path}={found[1]}")  # a shell has a meaning of its own for brackets
        text = f"{text[: found.start()]}: write --set {override}"
    return message_line(f"{place}: {path}{': ' if path else ''}{text}")


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
