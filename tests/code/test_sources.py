"""The tree itself: small files, tests of each package, nothing built, nothing of one machine, one version number."""

from __future__ import annotations

import configparser
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from fedsim.protocols import REGISTRY as PROTOCOLS

ROOT = Path(__file__).parents[2]
LONGEST_FILE_LINES = 300
BUILT = re.compile(
    r"(^|/)(__pycache__|build|dist|runs|\.venv|\.\w+_cache|\.ipynb_checkpoints|[^/]+\.egg-info)/|\.(pyc|so)$"
)
PLACES = {  # each is written so that it does not match itself
    "an absolute path of somebody's machine": re.compile(
        r"(?:(?<![\w.:/}])|file://)/(?:home|root|Users|work|tmp|opt)/\w"
    ),
    "a folder beside the repository": re.compile(r"\.\./share[d]\b"),
    "a package index": re.compile(
        r"\bpypi\.(?:org|python)|python[h]osted|pytorch\.org/whl|npm[j]s\.|index-url[ =]+http"
    ),
}
LOOKS_BESIDE_THE_REPOSITORY = {".ci/run"}  # for data sets, and does without


LONGEST_PART_LINES = 120
LONGER_PARTS = {"lasp.py", "memory.py", "scc.py", "common_layers.py", "objective.py", "exchange.py"}
"""HFedMS's exchange, its memory and its compression; FlexiFed's exchange; what all objectives, and all exchanges, are
derived from."""


def git(*arguments: str) -> list[str]:
    """The paths that ``git`` lists, one a line; the test is skipped where the tree is not a clone."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("the tree is not a clone")
    return done.stdout.splitlines()


def sources() -> dict[str, str]:
    """Path and text of every text file that is committed or about to be."""
    texts = {}
    for path in git("ls-files", "--cached", "--others", "--exclude-standard"):
        content = (ROOT / path).read_bytes() if (ROOT / path).is_file() else b"\0"
        if b"\0" not in content:
            texts[path] = content.decode("utf-8", errors="replace")
    return texts


def configuration() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_no_source_file_is_long() -> None:
    lines = {str(path): len(path.read_text("utf-8").splitlines()) for path in sorted((ROOT / "fedsim").rglob("*.py"))}
    assert lines
    assert {path: count for path, count in lines.items() if count > LONGEST_FILE_LINES} == {}


def test_no_protocol_knows_another_one() -> None:
    """What several have in common stands in files that are no protocol's."""
    modules = {entry.partition(":")[0] for entry in PROTOCOLS.values()}
    texts = {module: (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8") for module in modules}
    assert len(texts) > 10
    assert [(one, other) for one in texts for other in modules if re.search(rf"from {other} import", texts[one])] == []


def test_no_part_of_a_protocol_is_long() -> None:
    folders = ("learning/rules", "learning/objectives", "protocols/exchanges")
    paths = [path for folder in folders for path in (ROOT / "fedsim" / folder).glob("*.py")]
    paths += [ROOT / f"{entry.partition(':')[0].replace('.', '/')}.py" for entry in PROTOCOLS.values()]
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in paths}
    assert {name for name, count in lines.items() if count > LONGEST_PART_LINES} == LONGER_PARTS


@pytest.mark.parametrize("package", sorted(init.parent.name for init in (ROOT / "fedsim").glob("*/__init__.py")))
def test_every_package_has_tests(package: str) -> None:
    tests = [path.read_text("utf-8") for path in (ROOT / "tests" / package).rglob("test_*.py")]
    assert any("def test_" in text for text in tests), f"tests/{package} has no test"


def test_nothing_built_is_committed() -> None:
    assert [path for path in git("ls-files") if BUILT.search(path)] == []


def test_git_ignores_no_committed_file() -> None:
    assert git("ls-files", "--cached", "--ignored", "--exclude-standard") == []


@pytest.mark.parametrize("what", PLACES)
def test_no_file_names_a_place_that_others_do_not_have(what: str) -> None:
    exempt = LOOKS_BESIDE_THE_REPOSITORY if what == "a folder beside the repository" else set()
    found = {path: PLACES[what].search(text) for path, text in sources().items() if path not in exempt}
    assert {path: match.group() for path, match in found.items() if match} == {}


def test_the_version_is_said_once() -> None:
    version = configuration()["metadata"]["version"]
    said = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.])")
    history = {"CHANGELOG.md", "constraints.txt"}  # tells of all versions; pins those of others
    where = [
        path
        for path, text in sources().items()
        if path not in history and Path(path).suffix in {".cfg", ".md", ".py", ".toml"} and said.search(text)
    ]
    assert where == ["setup.cfg"]


def test_what_is_installed_is_what_setup_cfg_says() -> None:
    stated = configuration()["metadata"]
    assert metadata.version(stated["name"]) == stated["version"]
