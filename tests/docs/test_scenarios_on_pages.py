"""Whatever the pages show of a scenario is one: whole scenarios, and single sections in the place of the digits'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import PAGES, ROOT, fenced, files

from fedsim.experiment.validate import validate
from fedsim.scenario.load import load
from fedsim.scenario.schema import Scenario
from fedsim.scenario.yaml_reader import parse_yaml

DIGITS = ROOT / "scenarios/digits.yaml"
NEEDED = {key for key, field in Scenario.model_fields.items() if field.is_required()}
BLOCKS = [
    pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    if page.name != "my_plant.md"  # whose sections build on each other: it has a test of its own
    for number, text in enumerate(fenced(page, "yaml"), start=1)
]


def digits() -> dict[str, Any]:
    """What a page's sections are put into, with one seed: each of its three would load the same data again."""
    return {**parse_yaml(DIGITS.read_text("utf-8"), "digits").data, "seeds": [1]}


@pytest.mark.parametrize("text", BLOCKS)
def test_yaml_on_a_page_is_a_scenario_or_sections_of_one(text: str, tmp_path: Path) -> None:
    sections = parse_yaml(text, "the page").data
    rest = {} if sections.keys() >= NEEDED or "extends" in sections else digits()
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    (tmp_path / "topologies").symlink_to(ROOT / "topologies")
    (scenarios / "richest.py").write_text(fenced(ROOT / "docs/add_a_protocol.md", "python")[0], encoding="utf-8")
    for recipe in (ROOT / "docs/recipes").glob("*.md"):
        for name, content in files(recipe).items():
            (scenarios / name).write_text(content, encoding="utf-8")
    whole = scenarios / "whole.yaml"
    whole.write_text(yaml.safe_dump({**rest, **sections}, sort_keys=False), encoding="utf-8")
    scenario = load(whole)
    source = getattr(scenario.data, "path", None)
    if source is None or Path(source).exists():  # what pages call files of data is nowhere but on the page
        assert validate(scenario).topology.sensors


def test_there_is_something_to_test() -> None:
    assert BLOCKS
