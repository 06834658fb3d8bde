"""Works out every point of docs/validation.csv, prints it, and writes the table of docs/validation.md.

Exit status 1: one of them is outside its tolerance.
"""

from __future__ import annotations

import sys

import generate
from writers.markdown import ROOT
from writers.validation import points

PAGE = ROOT / "docs/validation.md"


def main() -> int:
    outside = 0
    for point in points():
        simulated = point.simulated
        deviation = point.deviation_percent(simulated)
        within = abs(deviation) <= point.tolerance_percent
        outside += not within
        verdict = "" if within else f"  OUTSIDE {point.tolerance_percent:g} %"
        print(f"{point.id:4} {point.published:>10g} {simulated:>12.6g} {point.unit:9} {deviation:+8.3f} %{verdict}")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(generate.generated(text), encoding="utf-8")
    print(
        f"{len(points()) - outside} of {len(points())} are within their tolerance; {PAGE.relative_to(ROOT)} is written"
    )
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
