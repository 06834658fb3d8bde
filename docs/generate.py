"""Writes what documentation can take from the code: docs/reference/, and the generated parts of the other pages.

A generated block stands between two comments::

    <!-- generated: source fedsim.protocols.round_trip:round_trip -->
    <!-- end of generated -->

In a fenced block of the language ``console``, lines that begin with ``$ fedsim`` are executed, and the lines below each
become what it answers. On a page that begins with ``<!-- walkthrough -->`` all files and commands are run in order, in
one empty folder. How each is made: docs/writers.
"""

from __future__ import annotations

import re
from pathlib import Path

from writers import blocks, reference, scenarios, walkthrough
from writers.markdown import ROOT

CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"(?P<begin><!-- generated: (?P<what>[^>]*?) -->\n).*?(?P<end><!-- end of generated -->)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Every file that this script writes, but walkthroughs, with the content that it should have now."""
    written = {ROOT / path: text for path, text in reference.pages().items()}
    for path in [ROOT / "README.md", scenarios.PAGE, *sorted((ROOT / "docs").rglob("*.md"))]:
        text = "" if path in written else path.read_text(encoding="utf-8")
        if text.startswith(walkthrough.MARK):
            continue  # its commands train, so it has a test of its own, and main() writes it
        if BLOCK.search(text) or CONSOLE.search(text):
            written[path] = generated(text)
    return written


def generated(text: str) -> str:
    """The *text* of a page with its generated parts as they should be now."""
    text = BLOCK.sub(lambda match: match["begin"] + blocks.block(match["what"]) + match["end"], text)
    return CONSOLE.sub(lambda match: blocks.answers(match[0]), text)


def main() -> None:
    for path, text in {**pages(), **walkthrough.pages()}.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
