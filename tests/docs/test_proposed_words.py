"""Words of the field that mean nothing here: what messages propose instead can be written so, with the recipes' files.

The proposals stand in ``fedsim/alike.csv``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, files

from fedsim import registry
from fedsim.radio.fixed import profiles
from fedsim.registry import alike
from fedsim.scenario.load import load

RECIPES = ROOT / "docs/recipes"
PLACES = {  # kind -> what stands for it in the recipes' plant
    "protocols": "{name: fedavg, clients: 5}",
    "rules": "{name: fedavg, clients: 5}",
    "models": "{name: small_cnn}",
    "datasets": "{name: digits, partition: {name: dirichlet, alpha: 0.5}}",
    "partitions": "{name: dirichlet, alpha: 0.5}",
    "radios": "{name: fixed, uplink_bps: 1.0e+6, downlink_bps: 1.0e+6}",
    "profiles": "uplink_bps: 1.0e+6, downlink_bps: 1.0e+6",
    "disciplines": "{name: dedicated}",
}
AROUND = {"rules": "{{name: fedavg, clients: 5, server: {}}}", "profiles": "profile: {}"}
"""What is written there, where it is more than what is proposed."""
WORDS = [(kind, word) for kind in PLACES for word in alike(kind)]


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipes' plant beside their files, and a module."""
    folder = tmp_path_factory.mktemp("plant")
    for page in RECIPES.glob("*.md"):
        for name, content in files(page).items():
            (folder / name).write_text(content, encoding="utf-8")
    (folder / "my_net.py").write_text("import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n")
    return folder / "plant.yaml"


@pytest.mark.parametrize(("kind", "word"), WORDS)
def test_a_word_is_no_name_and_what_is_proposed_for_it_is_one(kind: str, word: str, plant: Path) -> None:
    """Once a word becomes a name, it has to leave the table."""
    assert word not in (profiles() if kind == "profiles" else registry.names(kind))
    write, why = alike(kind)[word]
    text = plant.read_text(encoding="utf-8")
    assert text.count(PLACES[kind]) == 1
    other = plant.with_name("other.yaml")
    other.write_text(text.replace(PLACES[kind], AROUND.get(kind, "{}").format(write)), encoding="utf-8")
    load(other)
    for page in re.findall(r"docs/[\w/]+\.md", why):
        assert (ROOT / page).is_file()


def test_every_kind_of_things_in_the_table_is_tried() -> None:
    rows = (ROOT / "fedsim/alike.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert {row.split(",")[0] for row in rows} == {*PLACES, "keys", "options", "commands"}
