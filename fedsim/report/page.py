"""The report of finished runs: one HTML page with everything in it, which asks for nothing from anywhere.

The page runs two scripts, which its Content-Security-Policy knows by their digests: the libraries that draw charts, and
ours. Expressions of charts are interpreted, so nothing is compiled from text. All text of users is escaped, or stands
in data that scripts only read.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata, resources
from itertools import groupby
from pathlib import Path

from fedsim.errors import UserError
from fedsim.experiment.compare import run_names
from fedsim.experiment.figures import compared_runs, together
from fedsim.experiment.results import Results
from fedsim.files import own_file_opener, why_no_folder, why_not_own_file, write_atomically
from fedsim.report.libraries import chart_libraries, need_libraries
from fedsim.report.parts import Picture, Section
from fedsim.scenario.scalars import printable
from fedsim.viz.names import names_apart

__all__ = ["check_place", "report_page", "write_report"]

_MARK = b'<meta name="generator" content="fedsim '
_HEAD_BYTES = 2_000
"""From the beginning of a report to the end of its mark, at most."""
_MOST_IN_TITLE = 3
"""Runs that the title names."""
_MOST_IN_FULL = 8
"""Runs that have all of their sections: those of a run of `scenarios/quickstart.yaml` take 0.7 MB and 3 s."""
_LARGE = {
    "device_classes.csv": "the charts of device classes",
    "groups.parquet": "the charts of groups",
    "confusion.csv": "what was taken for what",
}
"""What else a page of more runs leaves out, by the table of a run that has it."""
_ENDINGS = (".html", ".htm")


def write_report(results: Sequence[Results], path: Path) -> list[str]:
    """Write the report of *results* to *path*, in place of an older report there.

    Returns a sentence for each thing that is missing from the page, which says so too.

    Raises `UserError` when a library is missing, when there is no run or one twice, when a run folder has lost its
    tables, and when *path* is no place for it (`check_place`).
    """
    check_place(path)
    sections = _sections(results)
    page = _page_of(sections, results).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page)
    return [sentence for section in sections for sentence in section.missing]


def check_place(path: Path) -> None:
    """Raise `UserError` unless a report can be written to *path*: what is there now is nothing, or a report."""
    shown = printable(str(path))
    if path.suffix.lower() not in _ENDINGS:
        raise UserError(f"{shown!r} must end in {' or '.join(_ENDINGS)}, as a report is a page; rename it with --out")
    if problem := why_no_folder(path.parent):
        raise UserError(f"{problem}; choose another place for the report with --out")
    kind = why_not_own_file(path)
    if kind:
        raise UserError(f"{shown} is {kind}; choose another place for the report with --out")
    if path.exists() and _MARK not in _beginning(path):
        raise UserError(f"{shown} is there, and is no report of fedsim; choose another place for the report with --out")


def _beginning(path: Path) -> bytes:
    with open(path, "rb", opener=own_file_opener) as file:
        return file.read(_HEAD_BYTES)


def report_page(results: Sequence[Results]) -> str:
    """The page; of equal results, the same.

    Raises `UserError` when a library is missing, when there is no run or one twice, and when a run folder has lost its
    tables.
    """
    return _page_of(_sections(results), results)


def _page_of(sections: Sequence[Section], results: Sequence[Results]) -> str:
    import jinja2
    from markupsafe import Markup

    libraries, ours = chart_libraries(), _resource("report.js").strip()
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(_resource("report.html.jinja")).render(
        title=_title(results),
        version=metadata.version("fedsim-industrial"),
        sections=sections,
        runs=[(run, list(own)) for run, own in groupby(sections, key=lambda section: section.run)],
        digests=[_digest(libraries), _digest(ours)],
        style=Markup(_resource("report.css")),
        libraries=Markup(libraries),
        script=Markup(ours),
        as_json=lambda value: Markup(_json(value)),
        as_drawing=Markup,
    )


def _title(results: Sequence[Results]) -> str:
    """The names of a few runs; of many, how many there are of a scenario, or the first ones and how many others."""
    names, more = run_names(results), len(results) - _MOST_IN_TITLE
    scenarios = {result.name for result in results}
    if more > 0 and len(scenarios) == 1:
        return f"{scenarios.pop()}: {len(results)} runs"
    comma = "; " if any(", " in name for name in names) else ", "
    return comma.join([*names[:_MOST_IN_TITLE], *([f"and {more} more"] if more > 0 else [])])


def _sections(results: Sequence[Results]) -> list[Section]:
    need_libraries()
    return list(_each_section(results))


def _each_section(results: Sequence[Results]) -> Iterator[Section]:
    """In their order: what is common to all runs, then what each has of its own."""
    from fedsim.report.classes import confusion, device_classes, groups
    from fedsim.report.costs import comparison, costs
    from fedsim.report.curves import curves
    from fedsim.report.facts import provenance, scenario
    from fedsim.report.fronts import fronts
    from fedsim.report.lines import Lines
    from fedsim.report.links import network
    from fedsim.report.varied import varied
    from fedsim.report.waiting import waiting

    rounds, summary = together(results, "rounds"), together(results, "summary")
    lines = Lines(summary, rounds)
    several, in_full = len(results) > 1, len(results) <= _MOST_IN_FULL
    if not several:
        yield scenario(results[0], "")
    yield replace(comparison(results), missing=[] if in_full else [_left_out(results)])
    common = (varied(results, lines), curves(rounds, lines), costs(summary, rounds, lines))
    yield from filter(None, (*common, fronts(compared_runs(results), lines)))
    names = names_apart(run_names(results)) if several else [""]
    sections: list[Callable[..., Section | None]] = [waiting, partial(network, drawn=in_full)]
    sections += [device_classes, groups, confusion] if in_full else []
    for number, (result, name) in enumerate(zip(results, names, strict=True), start=1):
        place = f"-of-run-{number}" if several else ""
        own = [scenario(result, place)] if several else []
        for make in sections:
            own += filter(None, [make(result, name, lines, place)])
        own.append(provenance(result, place))
        yield from (_of_run(section, name) if name else section for section in own)


def _left_out(results: Sequence[Results]) -> str:
    """What a page of so many runs says of what it has not."""
    large = ["the drawings of their networks"]
    large += [what for table, what in _LARGE.items() if any((result.folder / table).exists() for result in results)]
    *most, last = large
    words = f"{', '.join(most)} and {last}" if most else last
    return f"This page of {len(results)} runs leaves out {words}; a report of up to {_MOST_IN_FULL} runs has them."


def _of_run(section: Section, run: str) -> Section:
    """The *section*, of which each picture names the *run*."""
    return replace(section, run=run, pictures=[_named(picture, run) for picture in section.pictures])


def _named(picture: Picture, run: str) -> Picture:
    title, caption = picture.title, picture.sheet.caption
    if f", {run}," in f", {title},":  # one of its lines has named it
        return picture
    named = f"{title}, {run}"
    caption = f"{named}{caption.removeprefix(title)}" if caption.startswith(title) else f"{caption}, {run}"
    return replace(picture, title=named, sheet=replace(picture.sheet, caption=caption))


def _resource(name: str) -> str:
    return (resources.files("fedsim.report") / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _json(value: object) -> str:
    r"""JSON that no letter of a user can end, wherever it stands in a page.

    >>> _json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
