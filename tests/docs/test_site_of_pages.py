"""The site of all pages: it builds without a warning, loads nothing from elsewhere, and every link leads somewhere."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pages import PAGES, ROOT

import fedsim
from fedsim import registry
from fedsim.settings import Component

NEEDED = ("sphinx", "furo", "myst_nb")
LOADED = dict.fromkeys(("audio", "iframe", "img", "script", "source", "video"), "src") | {
    "link": "href",
    "object": "data",
}
NOT_LOADED = {"next", "prev", "index", "search", "canonical"}
"""What a ``<link>`` with an address may be, beside what is loaded."""
FROM_CSS = re.compile(r"@import|url\(\s*[\"']?(?P<address>[^)\"']+)")


class Page(HTMLParser):
    """What a page leads to, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors = {"", "top"}
        self.sidebar: list[str] = []
        self._in_sidebar = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self._in_sidebar |= "sidebar-tree" in given.get("class", "")
        self._in_sidebar &= tag != "article"
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            if self._in_sidebar:
                self.sidebar.append(given["href"])
        if LOADED.get(tag) in given and given.get("rel") not in NOT_LOADED:
            self.loads.append(given[LOADED[tag]])


def built(source: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """What `make site` does, with another source folder and another place, and in no colours, which CI asks for."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    recipe = re.search(r"-m sphinx (?P<words>.*) \. build/site$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert recipe is not None
    words = recipe["words"].replace("docs/site", str(ROOT / "docs/site")).replace("build/", f"{into}/")
    command = [sys.executable, "-m", "sphinx", *words.split(), "--no-color", str(source), str(into / "site")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = built(ROOT, folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "site"


@cache
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def every_page(site: Path) -> Iterator[tuple[Path, Page]]:
    for path in sorted(site.rglob("*.html")):
        yield path, page(path)


@pytest.mark.long
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loaded = {(path, address) for path, found in every_page(site) for address in found.loads}
    for path in site.rglob("*.css"):
        loaded |= {
            (path, match["address"] or match[0]) for match in FROM_CSS.finditer(path.read_text(encoding="utf-8"))
        }
    assert len(loaded) > 1000
    assert [(path, address) for path, address in loaded if is_elsewhere(address)] == []
    lost = [(path, address) for path, address in loaded if is_file(address) and not leads_to(path, address).is_file()]
    assert lost == []


def is_elsewhere(address: str) -> bool:
    return address == "@import" or urlsplit(address).scheme not in ("", "data") or address.startswith("//")


def is_file(address: str) -> bool:
    return not is_elsewhere(address) and urlsplit(address).scheme == ""


def leads_to(path: Path, address: str) -> Path:
    """The file that an *address* on the page at *path* means."""
    there = unquote(urlsplit(address).path)
    return (path.parent / there).resolve() if there else path


@pytest.mark.long
def test_every_link_on_the_site_leads_somewhere(site: Path) -> None:
    """Also those that Sphinx does not check: the sidebar, pages of files and folders, and lines of sources."""
    lost = []
    for path, found in every_page(site):
        for link in filter(is_file, found.links):
            there = leads_to(path, link)
            if not there.is_file() or (there.suffix == ".html" and urlsplit(link).fragment not in page(there).anchors):
                lost.append((path.relative_to(site), link))
    assert lost == []


@pytest.mark.long
def test_the_sidebar_leads_to_every_page_and_notebook(site: Path) -> None:
    front = site / "docs/README.html"
    reached = {leads_to(front, address) for address in page(front).sidebar} - {front}
    sources = {*PAGES, ROOT / "CONTRIBUTING.md", *(ROOT / "notebooks").glob("*.ipynb")} - {ROOT / "docs/README.md"}
    assert reached == {site / source.relative_to(ROOT).with_suffix(".html") for source in sources}


@pytest.mark.long
def test_index_html_leads_to_the_front_page(site: Path) -> None:
    assert page(site / "index.html").links == ["docs/README.html"]


@pytest.mark.long
def test_what_import_fedsim_gives_is_described_from_its_docstrings(site: Path) -> None:
    text = (site / "docs/api/fedsim.html").read_text(encoding="utf-8")
    assert {f"fedsim.{name}" for name in fedsim.__all__ if name != "__version__"} <= Page(text).anchors
    assert "Run <em>scenario</em> into the folder <em>out</em>" in text
    assert re.search(r'href="[^"]*#fedsim\.Results\.remarks"', text), "a name in a docstring is a link"
    assert 'href="fedsim.html#fedsim.UserError"' in (site / "docs/api/network.html").read_text(encoding="utf-8")
    assert re.search(r'href="../../fedsim/experiment/run\.py\.html#line-\d+"', text), "its source is shown"


@pytest.mark.long
def test_two_dashes_stay_two_dashes(site: Path) -> None:
    assert "as in --set training.epochs=2" in (site / "docs/reference/cli.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_what_leads_nowhere_and_what_is_in_no_list_fails_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "source" / "docs"
    docs.mkdir(parents=True)
    (docs / "README.md").write_text("# Pages\n\n## All\n\n[one](one.md)\n")
    (docs / "one.md").write_text("# One\n\n[a](lost.md), [b](one.md#lost), [c](../lost.py), [d](README.md#all)\n")
    (docs / "two.md").write_text("# Two\n")
    done = built(docs.parent, tmp_path)
    assert done.returncode == 1
    said = [line.removeprefix(f"{docs}/") for line in done.stderr.splitlines() if line.startswith(str(docs))]
    assert [line.split(" [")[0] for line in sorted(said)] == [
        "one.md:3: WARNING: 'myst' cross-reference target not found: '../lost.py'",
        "one.md:3: WARNING: 'myst' cross-reference target not found: 'lost.md'",
        "one.md:3: WARNING: local id not found in doc 'docs/one': 'lost'",
        "two.md: WARNING: document isn't included in any toctree",
    ]


def bases_of(kind: str) -> list[str]:
    """The classes of *kind* that all of its components have in common, without those of all kinds."""
    classes = [found for name in registry.names(kind) if inspect.isclass(found := registry.load(kind, name))]
    common = [base for base in classes[0].__mro__ if all(issubclass(found, base) for found in classes)]
    return [f"{base.__module__}.{base.__qualname__}" for base in common if base not in Component.__mro__]


@pytest.mark.parametrize("kind", [kind for kind in registry.KINDS if kind not in ("paper_tables", "exporters")])
def test_the_base_class_of_every_kind_of_component_is_on_a_page_of_the_api(kind: str) -> None:
    """Published tables and exporters are functions."""
    shown = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/api").glob("*.md")))
    assert set(bases_of(kind)) & set(re.findall(r"^\.\. autoclass:: (\S+)$", shown, re.MULTILINE))
