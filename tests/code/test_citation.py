"""CITATION.cff is what citation tools read (Citation File Format 1.2.0), and speaks of this version."""

from __future__ import annotations

import configparser
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def test_it_has_what_the_format_requires() -> None:
    assert CITATION.keys() >= {"cff-version", "message", "title", "authors"}
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] == "software"
    for reference in CITATION["references"]:
        assert reference.keys() >= {"type", "title", "authors", "year"}
        assert all(author.keys() >= {"family-names", "given-names"} for author in reference["authors"])


def test_version_and_licence_are_those_of_the_package() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    assert str(CITATION["version"]) == setup["metadata"]["version"]
    assert CITATION["license"] == setup["metadata"]["license"]
