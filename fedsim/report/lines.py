"""Which line, and which bar, of a report is whose, and how it looks: in all charts the same."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from fedsim.report.parts import Entry, unlike
from fedsim.report.shapes import SHAPES
from fedsim.viz.series import series_of
from fedsim.viz.style import Line, looks

__all__ = ["Lines"]

_DASHES: dict[Line, tuple[float, ...]] = {"-": (), "--": (7, 4), "-.": (7, 3, 1.5, 3), ":": (1.5, 3)}


class Lines:
    """A line for each run and protocol, with the colours of ``fedsim plot``; the run is "" where there is one only.

    *summary* and *rounds* are of all runs.
    """

    def __init__(self, summary: pd.DataFrame, rounds: pd.DataFrame) -> None:
        whose: pd.DataFrame = pd.concat([summary, rounds])
        self.series = series_of(whose, looks(whose["protocol"].astype(str)))
        names = unlike([self.series.name(*key) for key in self.series.looks])
        self._entries = {
            key: Entry(number, name, look.colour, _DASHES[look.line])
            for number, (name, (key, look)) in enumerate(zip(names, self.series.looks.items(), strict=True))
        }

    def entry(self, run: str, protocol: str) -> Entry:
        """Of one protocol in one run."""
        return self._entries[run, protocol]

    def over_runs(self) -> dict[str, Entry]:
        """A line for each protocol, over all runs; what hides it is its own."""
        of_protocols = looks(self.series.protocols)
        names = unlike(of_protocols)
        return {
            protocol: Entry(-number, name, look.colour, _DASHES[look.line])
            for number, (name, (protocol, look)) in enumerate(zip(names, of_protocols.items(), strict=True), start=1)
        }

    def mark(self, run: str, protocol: str) -> Entry:
        """The same as a mark: of several runs its shape is the run, of one the protocol."""
        runs = self.series.runs
        look = looks(runs)[run] if len(runs) > 1 else self.series.looks[run, protocol]
        return replace(self.entry(run, protocol), dashes=(), shape=SHAPES[look.marker])

    def of_run(self, run: str | None = None) -> list[Entry]:
        """All, or those of one run, in order."""
        return [entry for (whose, _), entry in self._entries.items() if run is None or whose == run]
