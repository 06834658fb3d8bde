"""Classes that do not come with fedsim: from a user's file, in every command.

Their source is part of what a scenario is: other code is another scenario.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import small_worlds
from parts_from_outside import PARTS, plant, refusal

from fedsim.cli import main
from fedsim.cli.schema import scenario_schema
from fedsim.errors import UserError
from fedsim.experiment.results import load_results
from fedsim.imports import import_path, load_function, source_digest
from fedsim.models.declared import DeclaredTable
from fedsim.protocols.fedavg import FedAvg
from fedsim.scenario.load import load, written_out
from fedsim.settings import Component

pytestmark = pytest.mark.usefixtures("folder")


def edit(old: str = "NOTHING = 3", new: str = "NOTHING = 4") -> None:
    file = Path("mine.py")
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def with_radio(**radio: Any) -> dict[str, Any]:
    cell = {**small_worlds.BASE["network"]["cell"], **radio}
    return {**small_worlds.BASE["network"], "cell": cell}


# -- every command ----------------------------------------------------------------------------------------------------


def test_a_protocol_of_ones_own_is_taken_by_every_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(protocols=[{"name": "fedavg", "clients": 1}, {"path": "mine.py:Mine", "my_key": 4}])
    for words in (
        ["validate", "plant.yaml"],
        ["describe", "plant.yaml"],
        ["run", "plant.yaml", "--out", "run", "--quiet"],
        ["run", "run/scenario.yaml", "--out", "again", "--quiet"],
        ["run", "plant.yaml", "--out", "only", "--only", "Mine", "--quiet"],
        ["compare", "run", "again"],
        ["plot", "run"],
        ["draw", "plant.yaml", "--run", "run"],
    ):
        assert main(words) == 0, capsys.readouterr().err
    assert (folder / "run/figures/network.png").is_file()
    results = load_results(folder / "run")
    assert list(results.summary["protocol"]) == ["fedavg", "Mine"]
    hashes = [[row["trace_hash"] for row in load_results(folder / name).manifest["runs"]] for name in ("run", "again")]
    assert hashes[0] == hashes[1]
    assert hashes[0][0] == hashes[0][1], "the default of its own is what the other has as a key"


@pytest.mark.parametrize(
    ("changes", "like"),
    [
        pytest.param(
            {"protocols": [{"name": "stp", "label": "chains", "grouping": {"path": "mine.py:InOrder"}}]},
            {"protocols": [{"path": "mine.py:Chains"}]},
            id="grouping",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"network": with_radio(radio={"path": "mine.py:Steady", "uplink_bps": 1_000, "downlink_bps": 2_000})},
            {},
            id="radio",
            marks=pytest.mark.long,
        ),
        pytest.param({"network": with_radio(discipline={"path": "mine.py:Queue"})}, {}, id="discipline"),
    ],
)
def test_other_parts_are_taken_too(changes: dict[str, Any], like: dict[str, Any], folder: Path) -> None:
    hashes = []
    for name, content in (("first", changes), ("second", like)):
        assert main(["run", str(plant(**content)), "--out", name, "--quiet"]) == 0
        assert main(["run", f"{name}/scenario.yaml", "--out", f"{name}-again", "--quiet"]) == 0
        assert (folder / name / "scenario.yaml").read_bytes() == (folder / f"{name}-again/scenario.yaml").read_bytes()
        hashes.append(load_results(folder / name).manifest["runs"][0]["trace_hash"])
    assert hashes[0] == hashes[1]
    assert main(["plot", "first"]) == 0
    assert (folder / "first/figures/network.png").is_file()


def test_what_is_written_out_says_where_the_class_is_and_what_it_was(folder: Path) -> None:
    scenario = load(plant())
    text = written_out(scenario)
    digest = hashlib.sha256(PARTS.encode()).hexdigest()
    assert f"- path: {folder / 'mine.py'}:Mine\n  sha256: {digest}\n" in text
    assert "my_key: 4" in text
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "again.yaml").write_text(text)
    assert load(elsewhere / "again.yaml") == scenario


def test_a_part_that_is_the_default_of_a_class_of_ones_own_is_written_out_with_its_path(folder: Path) -> None:
    scenario = load(plant(protocols=[{"path": "mine.py:Chains"}]))
    text = written_out(scenario)
    assert f"grouping:\n    path: {folder / 'mine.py'}:InOrder\n" in text
    Path("again.yaml").write_text(text)
    assert written_out(load("again.yaml")) == text


def test_a_class_is_called_as_it_says_or_by_its_own_name() -> None:
    protocols = [{"path": "mine.py:Mine"}, {"path": "mine.py:Chosen", "clients": 1}, {"path": "mine.py:Chains"}]
    assert [protocol.title for protocol in load(plant(protocols=protocols)).protocols] == ["Mine", "my own", "chains"]
    twice = [{"path": "mine.py:Mine"}, {"path": "mine.py:Mine", "label": "again"}]
    assert [protocol.title for protocol in load(plant(protocols=twice)).protocols] == ["Mine", "again"]


def test_a_key_of_it_is_set_from_the_command_line() -> None:
    scenario = load(plant(), overrides=["protocols.Mine.my_key=9"])
    assert scenario.protocols[0].model_dump()["my_key"] == 9


def test_what_does_not_fit_is_shown_at_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    protocols = [{"name": "fedavg", "clients": 1}, {"path": "mine.py:Mine", "clients": 3}]
    said = refusal("validate", str(plant(protocols=protocols)), capsys=capsys)
    assert "plant.yaml:1: protocols[1].clients: 3 must be at most 2" in said
    said = refusal("run", "plant.yaml", "--only", "Mine", capsys=capsys)
    assert "plant.yaml:1: protocols[1].clients: 3 must be at most 2" in said


def test_over_another_component_it_begins_anew() -> None:
    below = small_worlds.BASE["network"] | {"cell": {**small_worlds.BASE["network"]["cell"]}}
    Path("below.yaml").write_text(
        json.dumps({**small_worlds.BASE, "network": below, "data": {"name": "declared", "samples_per_client": 9}})
    )
    radio = {"path": "mine.py:Steady", "downlink_bps": 7, "uplink_bps": 5}
    Path("middle.yaml").write_text(json.dumps({"extends": "below.yaml", "network": {"cell": {"radio": radio}}}))
    assert type(load("middle.yaml").network.cell.radio).__name__ == "Steady"
    above = {"extends": "middle.yaml", "network": {"cell": {"radio": {"uplink_bps": 6}}}}
    Path("above.yaml").write_text(json.dumps(above))
    found = load("above.yaml").network.cell.radio.model_dump()
    assert (found["uplink_bps"], found["downlink_bps"]) == (6, 7)
    back = {"extends": "above.yaml", "network": below}
    Path("back.yaml").write_text(json.dumps(back))
    assert load("back.yaml").network.cell.radio.name == "fixed"


@pytest.mark.long
def test_the_schema_for_editors_lets_a_path_stand_for_a_name() -> None:
    schema = scenario_schema()
    jsonschema.validate(json.loads(plant().read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(plant(protocols=[{"path": "a:b", "name": "stp"}]).read_text()), schema)
    partial = {"extends": "plant.yaml", "network": {"cell": {"radio": {"path": "mine.py:Steady", "uplink_bps": 5}}}}
    jsonschema.validate(partial, schema)


# -- other code, another scenario -------------------------------------------------------------------------------------


def test_edited_code_is_another_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plant()), "--out", "run", "--quiet"]) == 0
    edit()
    said = refusal("run", "plant.yaml", "--out", "run", capsys=capsys)
    path = Path("mine.py").resolve()
    assert said == (
        f"fedsim: run holds the run of a different scenario ({path}:Mine has been edited since); choose another "
        "folder with --out\n"
    )
    said = refusal("run", "run/scenario.yaml", "--out", "again", capsys=capsys)
    assert "protocols[0].sha256: " in said
    assert "leave sha256 out to use this one" in said
    edit("NOTHING = 4", "NOTHING = 3")
    assert main(["run", "plant.yaml", "--out", "run", "--quiet"]) == 0


def test_an_unfinished_run_does_not_go_on_with_edited_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plant()), "--out", "run", "--quiet"]) == 0
    manifest = json.loads((folder / "run/manifest.json").read_text())
    (folder / "run/manifest.json").write_text(json.dumps(manifest | {"status": "running", "runs": []}))
    edit()
    assert "mine.py:Mine has been edited since" in refusal(
        "run", "plant.yaml", "--out", "run", "--resume", capsys=capsys
    )
    edit("NOTHING = 4", "NOTHING = 3")
    assert main(["run", "plant.yaml", "--out", "run", "--resume", "--quiet"]) == 0


def test_a_run_folder_is_read_without_running_the_code_that_it_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    radio = with_radio(radio={"path": "mine.py:Steady", "uplink_bps": 1_000, "downlink_bps": 2_000})
    assert main(["run", str(plant(network=radio)), "--out", "run", "--quiet"]) == 0
    (folder / "theirs").mkdir()
    shutil.copytree(folder / "run", folder / "theirs/run")
    (folder / "mine.py").write_text(f"open({str(folder / 'executed')!r}, 'w').close()\n{PARTS}")
    own = plant(protocols=[{"name": "fedavg", "clients": 1}])
    for words in (["compare", "theirs/run"], ["plot", "theirs/run"], ["draw", str(own), "--run", "theirs/run"]):
        assert main(words) == 0
    said = refusal("run", str(own), "--out", "theirs/run", capsys=capsys)
    assert f"a different scenario (it names the code {folder / 'mine.py'}:" in said
    written = folder / "theirs/run/scenario.yaml"
    written.write_text(written.read_text().replace("  sha256:", "  # sha256:"))
    assert "it names the code" in refusal("run", str(own), "--out", "theirs/run", capsys=capsys)
    assert not (folder / "executed").exists()


def test_a_topology_that_only_code_knows_is_not_drawn_from_a_run_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "stars.py").write_text("from fedsim.topology.tree import Star\nclass Mine(Star):\n    '''Mine.'''\n")
    topology = {"path": "stars.py:Mine", "devices": 2}
    assert main(["run", str(plant(topology=topology)), "--out", "run", "--quiet"]) == 0
    assert main(["plot", "run"]) == 0
    assert f"topology: is made by {folder / 'stars.py'}:Mine, which is not run here" in capsys.readouterr().err
    assert main(["draw", "plant.yaml"]) == 0


def test_the_digest_is_that_of_all_files_in_which_the_class_was_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source_digest(FedAvg) is None
    assert source_digest(Component) is None
    mine: Any = load_function(f"{folder / 'mine.py'}:Mine", what="a protocol")[0]
    assert source_digest(mine) == hashlib.sha256(PARTS.encode()).hexdigest()
    assert import_path(mine) == f"{folder / 'mine.py'}:Mine"
    monkeypatch.syspath_prepend(folder)
    (folder / "outside_base.py").write_text(PARTS)
    (folder / "outside_top.py").write_text("from outside_base import Mine\nclass Top(Mine):\n    '''Mine.'''\n")
    top: Any = load_function("outside_top:Top", what="a protocol")[0]
    digests = [hashlib.sha256((folder / f"outside_{name}.py").read_bytes()).hexdigest() for name in ("top", "base")]
    assert source_digest(top) == hashlib.sha256("".join(digests).encode()).hexdigest()
    assert import_path(top) == "outside_top:Top"


def test_a_table_from_outside_has_its_source_in_its_digest() -> None:
    class Twice(DeclaredTable):
        pass

    own, other = DeclaredTable(total=4.0), Twice(total=4.0)
    assert own.text == other.text
    assert own.digest != other.digest


def test_a_class_that_stands_in_no_file_has_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    class Typed:
        pass

    monkeypatch.setattr(Typed, "__module__", "typed_in")
    with pytest.raises(UserError, match="the module 'typed_in' stands in no file"):
        source_digest(Typed)


def test_plain_classes_have_digests_too() -> None:
    class Objective:
        pass

    assert source_digest(Objective) == hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


# -- what is wrong ----------------------------------------------------------------------------------------------------

BASE = "must be a class derived from fedsim.protocols.protocol.Protocol"


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (
            {"path": "mime.py:Mine"},
            "protocols[0].path: mime.py: there is no such file; did you mean 'mine.py'?",
        ),
        ({"path": "mine.py:Mien"}, "protocols[0].path: {folder}/mine.py: there is no 'Mien'; did you mean 'Mine'?"),
        ({"path": "mine.py"}, "protocols[0].path: 'mine.py' must be a file and a name, as in my_code.py:name"),
        ({"path": 3}, "protocols[0]: needs the key 'name'"),
        ({"path": "nowhere_at_all:Mine"}, "protocols[0].path: no module is called 'nowhere_at_all'"),
        ({"path": "mine.py:nothing"}, "mine.py: 'nothing' is of type str and cannot be called"),
        ({"path": "mine.py:made"}, f"protocols[0].path: {{folder}}/mine.py:made is no class, and {BASE}"),
        ({"path": "mine.py:Other"}, f"mine.py:Other is another class, and {BASE}"),
        ({"path": "mine.py:FedAvg"}, "mine.py:FedAvg is fedsim's own FedAvg"),
        ({"path": "mine.py:Fedprox"}, "mine.py:Fedprox is called 'fedprox' as one of fedsim's own protocols"),
        ({"path": "mine.py:Placed"}, "mine.py:Placed has a key 'path' of its own"),
        ({"path": "mine.py:Hidden"}, "mine.py:Hidden must stand in its file under its own name, Inner"),
        ({"path": "mine.py:Alias", "my_kez": 1}, "protocols[0].my_kez: unknown key; did you mean 'my_key'?"),
        ({"path": "mine.py:Choosy"}, "mine.py:Choosy fails while its keys are checked: {folder}/mine.py:77: KeyError"),
        ({"path": "mine.py:Vague"}, "name 'Nowhere' is not defined"),
        ({"path": "bad.py:Mine"}, "protocols[0].path: {folder}/bad.py:2: ZeroDivisionError: division by zero"),
        ({"path": "mine.py:Mine", "name": "fedavg"}, "protocols[0].path: stands beside a name; leave the name out"),
        ({"path": "data", "name": "fedavg"}, "protocols[0].path: unknown key"),
        ({"path": "mine.py:Mine", "my_kez": 1}, "protocols[0].my_kez: unknown key; did you mean 'my_key'?"),
        ({"path": "mine.py:Mine", "sha256": "0"}, "protocols[0].sha256: {folder}/mine.py:Mine is other code than"),
        ({"path": "mine.py:Chains", "grouping": {"path": "mine.py:Unfinished"}}, "must define: equal_groups"),
        ({"path": "mine.py:Chains", "grouping": {"path": "mine.py:InOrder", "x": 1}}, "grouping.x: unknown key"),
        ({"path": "mine.py:Chains", "grouping": {"path": "mine.py:Mine"}}, "grouping.path: {folder}/mine.py:Mine is"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(
    protocol: dict[str, Any], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.py").write_text("print\n1 / 0\n")
    found = refusal("validate", str(plant(protocols=[protocol])), capsys=capsys)
    assert said.replace("{folder}", str(folder)) in found
    assert found.count("\n") == 1
