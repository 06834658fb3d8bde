"""Classes that an installed package offers by entry points, in every command."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts_from_outside import PARTS, TRAINER, plant, refusal

from fedsim import registry
from fedsim.cli import main
from fedsim.cli.schema import scenario_schema
from fedsim.errors import UserError
from fedsim.experiment.host import HostOptions, numeric_family
from fedsim.experiment.results import load_results
from fedsim.scenario.load import load

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with an installed package that offers a few things."""
    site = folder / "site"
    (site / "plants-1.0.dist-info").mkdir(parents=True)
    (site / "plants-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: plants\nVersion: 1.0\n")
    (site / "plants-1.0.dist-info/entry_points.txt").write_text(
        "[fedsim.protocols]\nChosen = plants_of_mine:Mine\nMine = plants_of_mine:Mine\n"
        "fedavg = plants_of_mine:Mine\nlost = plants_of_mine:Lost\n"
        "[fedsim.executors]\nmine = plants_trainer:Mine\n[fedsim.paper_tables]\nmine = plants_of_mine:made\n"
    )
    (site / "plants_of_mine.py").write_text(PARTS)
    (site / "plants_trainer.py").write_text(TRAINER)
    monkeypatch.syspath_prepend(site)
    registry.offers.cache_clear()
    yield site
    registry.offers.cache_clear()
    sys.modules.pop("plants_of_mine", None)


def test_what_a_package_offers_has_a_name(package: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    protocols = [{"name": "fedavg", "clients": 1}, {"name": "Mine", "my_key": 2}]
    assert main(["run", str(plant(protocols=protocols)), "--out", "run", "--quiet"]) == 0
    first, second = load_results(folder / "run").manifest["runs"]
    assert (first["protocol"], second["protocol"]) == ("fedavg", "Mine")
    assert first["trace_hash"] == second["trace_hash"]
    digest = hashlib.sha256(PARTS.encode()).hexdigest()
    text = (folder / "run/scenario.yaml").read_text()
    assert f"- path: plants_of_mine:Mine\n  sha256: {digest}\n" in text
    assert main(["run", "run/scenario.yaml", "--out", "run", "--quiet"]) == 0
    said = refusal("validate", "plant.yaml", "--set", "protocols.Mine.my_kez=2", capsys=capsys)
    assert "protocols[1].my_kez: unknown key; did you mean 'my_key'?" in said


def test_the_list_says_who_offers_what(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "protocols"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "Mine FedAvg with one client by default. (offered by plants)" in lines
    assert "fedavg Not used: plants offers it, and fedsim's own of this name comes first." in lines
    assert [line for line in lines if line.startswith("lost plants_of_mine: there is no 'Lost'")]
    assert main(["list", "radios"]) == 0
    assert "plants" not in capsys.readouterr().out


def test_what_is_wrong_with_an_offer_is_said(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in (
        ("lost", "protocols[0].name: plants_of_mine: there is no 'Lost'"),
        ("Chosen", "protocols[0].name: is what plants offers, but the class calls itself 'Mine'"),
        ("Mien", "protocols[0].name: no protocol is called 'Mien'; did you mean 'Mine'?"),
    ):
        assert said in refusal("validate", str(plant(protocols=[{"name": name}])), capsys=capsys)


def test_an_executor_that_is_offered_is_part_of_the_arithmetic(package: Path) -> None:
    HostOptions(executor="mine")
    with pytest.raises(UserError, match=r"no executor is called 'mime'; did you mean 'mine'\?"):
        HostOptions(executor="mime")
    families = [numeric_family(registry.load("executors", name), "cpu", "float32") for name in ("serial", "mine")]
    assert families[1] == f"{families[0]}/{hashlib.sha256(TRAINER.encode()).hexdigest()}"


def test_a_table_that_is_offered_may_be_asked_for(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load(plant(paper_table="mine")).paper_table == "mine"
    assert "no table is called 'mime'; did you mean 'mine'?" in refusal(
        "validate", str(plant(paper_table="mime")), capsys=capsys
    )


def test_two_packages_that_offer_the_same_are_refused(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = package / "others-1.0.dist-info"
    shutil.copytree(package / "plants-1.0.dist-info", other)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    said = refusal("validate", str(plant(protocols=[{"name": "Mine"}])), capsys=capsys)
    assert "'Mine' of protocols is offered by others and plants; uninstall all of them but one" in said


def test_the_schema_knows_what_is_offered(package: Path) -> None:
    offered = {"properties": {"name": {"enum": ["Chosen", "Mine", "lost"]}}, "required": ["name"], "type": "object"}
    assert offered in scenario_schema()["else"]["properties"]["protocols"]["items"]["anyOf"]


def test_packages_are_not_looked_for_when_fedsim_has_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(**_: str) -> None:
        raise AssertionError("it was looked for packages")

    registry.offers.cache_clear()
    monkeypatch.setattr("importlib.metadata.entry_points", never)
    assert main(["validate", str(plant(protocols=[{"name": "fedavg", "clients": 1}]))]) == 0
    assert main(["validate", str(plant())]) == 0
