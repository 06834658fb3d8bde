"""``fedsim plot``, ``fedsim schema`` and ``fedsim list``."""

from __future__ import annotations

import json
import sys
from math import nan
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest
from scenario_texts import write_scenario
from tiny_results import rounds_of, write_results

from fedsim import registry
from fedsim.cli import main
from fedsim.cli.schema import scenario_schema
from fedsim.radio.fixed import profiles
from fedsim.scenario.yaml_reader import read_yaml

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = scenario_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def cell_says(validator: jsonschema.Draft202012Validator, **keys: Any) -> list[str]:
    """What the schema has against a cell of a scenario that is fine otherwise."""
    content = read_yaml(ROOT / "scenarios" / "quickstart.yaml").data
    radio = {"name": "fixed", "profile": "lte_m_m2"}
    content = {**content, "network": {**content["network"], "cell": {"radio": radio, **keys}}}
    return [error.json_path for error in validator.iter_errors(content)]


def test_the_schema_offers_todays_words_and_lets_a_cell_leave_out_all_but_its_radio(
    validator: jsonschema.Draft202012Validator,
) -> None:
    assert cell_says(validator) == []
    assert cell_says(validator, duplex="shared", carriers=2, discipline={"name": "fair"}) == []
    assert cell_says(validator, duplex="half") == ["$.network.cell.duplex"]
    assert cell_says(validator, carriers=0) == ["$.network.cell.carriers"]
    cell = scenario_schema()["$defs"]["CellSettings"]
    assert cell["required"] == ["radio"]
    assert cell["properties"]["duplex"]["enum"] == ["full", "shared"]
    assert "default" not in cell["properties"]["discipline"]


def test_figures_go_into_the_run_folder_and_are_named(tmp_path: Path, capsys: Capture) -> None:
    write_results(tmp_path / "run", [rounds_of("fedavg", 1, [nan, nan])])
    assert main(["plot", str(tmp_path / "run")]) == 0
    named = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(named) == sorted((tmp_path / "run/figures").iterdir())
    assert tmp_path / "run/figures/overview.png" in named


def test_figures_of_several_runs_need_a_folder(tmp_path: Path, capsys: Capture) -> None:
    for name in ("a", "b"):
        write_results(tmp_path / name, [rounds_of("fedavg", 1, [nan, nan])], name=name)
    both = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["plot", *both]) == 2
    assert "--out DIR" in capsys.readouterr().err
    assert main(["plot", *both, "--out", str(tmp_path / "both"), "--format", "svg"]) == 0
    assert (tmp_path / "both/overview.svg").is_file()


def test_a_folder_that_cannot_be_made_is_wrong_input(tmp_path: Path, capsys: Capture) -> None:
    write_results(tmp_path / "run", [rounds_of("fedavg", 1, [0.2, 0.8])])
    (tmp_path / "file").write_text("")
    assert main(["plot", str(tmp_path / "run"), "--out", str(tmp_path / "file")]) == 2
    assert f"{tmp_path / 'file'} is not a folder; choose another folder with --out" in capsys.readouterr().err


def test_runs_are_compared_at_equal_bytes_with_another_target(tmp_path: Path, capsys: Capture) -> None:
    runs = [rounds_of("dear", 1, [0.2, 0.8], round_bytes=5e6), rounds_of("cheap", 1, [0.3, 0.4, 0.6, 0.6, 0.6, 0.6])]
    write_results(tmp_path / "run", runs)
    command = ["compare", str(tmp_path / "run"), "--at", "transfer_bytes=6e6", "--target", "0.6"]
    assert main([*command, "--csv", str(tmp_path / "numbers.csv")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [[cell.strip() for cell in line.split("|")[1:3]] for line in printed[2:]] == [
        ["dear", "0.200"],
        ["cheap", "0.600"],
    ]
    numbers = pd.read_csv(tmp_path / "numbers.csv").set_index("protocol")
    assert (numbers["rounds_mean"]["dear"], numbers["rounds_to_target_mean"]["cheap"]) == (1, 3)


def test_a_target_that_nobody_reached_is_said(tmp_path: Path, capsys: Capture) -> None:
    write_results(tmp_path / "run", [rounds_of("a", 1, [0.2, 0.8])])
    assert main(["compare", str(tmp_path / "run"), "--target", "0.8"]) == 0
    remark = "Remark: no run reached 0.8 and then averaged at most 0.5 points below it in 3 more evaluations\n"
    assert remark in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "run")]) == 0
    assert "reached" not in capsys.readouterr().err
    write_results(tmp_path / "network", [rounds_of("a", 1, [nan, nan])])
    assert main(["compare", str(tmp_path / "network"), "--target", "0.8"]) == 0
    assert "Remark: there is no accuracy here that could reach 0.8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("trained", "accuracies", "why"),
    [
        (None, ([nan], [nan]), "nothing was trained in these runs"),
        ("float32", ([nan], [0.5]), "no row has a score on every seed"),
        ("float32", ([0.5], [0.5]), None),
    ],
)
def test_where_nobody_is_on_a_front_a_remark_says_why(
    trained: str | None, accuracies: tuple[list[float], ...], why: str | None, tmp_path: Path, capsys: Capture
) -> None:
    rounds = [rounds_of("a", seed, scores) for seed, scores in enumerate(accuracies, 1)]
    folder = write_results(tmp_path / "run", rounds).folder
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_bytes()), "numeric_family": trained}))
    assert main(["compare", str(folder), "--front"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "front" in line]
    assert said == ([] if why is None else [f"Remark: there is no Pareto front: {why}"])
    assert main(["compare", str(folder)]) == 0
    assert "front" not in capsys.readouterr().err


def test_who_ended_before_the_budget_is_said(tmp_path: Path, capsys: Capture) -> None:
    write_results(tmp_path / "run", [rounds_of("short", 1, [0.2, 0.8]), rounds_of("long", 1, [0.1] * 9)])
    assert main(["compare", str(tmp_path / "run"), "--at", "round=5"]) == 0
    assert "Remark: short ended before round=5 was spent, and stands as it ended\n" in capsys.readouterr().err


def test_several_runs_of_one_round_that_ended_before_the_budget_are_named(tmp_path: Path, capsys: Capture) -> None:
    write_results(tmp_path / "run", [rounds_of(name, 1, [0.5]) for name in ("one", "other")])
    assert main(["compare", str(tmp_path / "run"), "--at", "round=5"]) == 0
    assert "Remark: one, other ended before round=5 was spent, and stand as they ended\n" in capsys.readouterr().err


def test_what_has_nothing_within_the_budget_is_said_with_what_it_takes(tmp_path: Path, capsys: Capture) -> None:
    late = rounds_of("late", 1, [nan, nan, 0.5])  # evaluated for the first time after three rounds
    write_results(tmp_path / "run", [late, rounds_of("soon", 1, [0.1, 0.2, 0.3])])
    assert main(["compare", str(tmp_path / "run"), "--at", "round=2"]) == 0
    assert "Remark: round=2 is too little for the first evaluation of late (it takes 3)\n" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "run"), "--at", "round=3"]) == 0
    assert "too little" not in capsys.readouterr().err


def test_without_evaluations_a_budget_has_to_be_enough_for_a_round_on_every_seed(
    tmp_path: Path, capsys: Capture
) -> None:
    write_results(tmp_path / "run", [rounds_of("none", seed, [nan], round_s=3.0 * seed) for seed in (1, 2)])
    assert main(["compare", str(tmp_path / "run"), "--at", "sim_time_s=5"]) == 0
    remark = "sim_time_s=5 is too little for the first round on every seed of none (it takes 6)\n"
    assert remark in capsys.readouterr().err


def test_the_budget_that_is_said_is_enough_for_every_run(tmp_path: Path, capsys: Capture) -> None:
    """A third of a second more than a million seconds is not rounded down."""
    folders = [tmp_path / name for name in ("short", "long")]
    for folder, round_s in zip(folders, (3.0, 1_000_000 + 1 / 3), strict=True):
        write_results(folder, [rounds_of("fedavg", 1, [0.5], round_s=round_s)])
    assert main(["compare", *map(str, folders), "--at", "sim_time_s=2"]) == 0
    remark = "sim_time_s=2 is too little for the first evaluation of fedavg (it takes"
    told = capsys.readouterr().err
    assert f"{folders[0]}, {remark} 3)\n" in told
    assert f"{folders[1]}, {remark} 1.00001e+06)\n" in told
    assert main(["compare", *map(str, folders), "--at", "sim_time_s=1000000.25"]) == 0
    assert "sim_time_s=1000000.25 is too little" in capsys.readouterr().err
    assert main(["compare", *map(str, folders), "--at", "sim_time_s=1.00001e+06"]) == 0
    assert "too little" not in capsys.readouterr().err


def test_the_schema_is_printed(capsys: Capture) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == scenario_schema()


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_follows_the_schema(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    assert list(validator.iter_errors(read_yaml(path).data)) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"sedes": [1]}, "$"),
        ({"seeds": [-1]}, "$.seeds[0]"),
        ({"topology": 5}, "$.topology"),
        ({"topology": {"name": "star"}}, "$.topology"),
        ({"protocols": []}, "$.protocols"),
        ({"stop": {"rounds": "many"}}, "$.stop"),
    ],
)
def test_the_schema_finds_what_is_wrong(
    tmp_path: Path, change: dict[str, Any], place: str, validator: jsonschema.Draft202012Validator
) -> None:
    data = {**read_yaml(write_scenario(tmp_path)).data, **change}
    errors = list(validator.iter_errors(data))
    assert errors
    assert all(error.json_path.startswith(place) for error in errors)


@pytest.mark.parametrize(
    ("own", "place"),
    [
        ({}, None),
        ({"data": {"stream": {"samples": 10}}, "training": {"epochs": 2}}, None),
        ({"sedes": [1]}, "$"),
        ({"training": {"epoch": 2}}, "$.training"),
        ({"training": {"epochs": 0}}, "$.training.epochs"),
        ({"extends": 5}, "$.extends"),
    ],
)
def test_what_extends_a_scenario_needs_no_key_but_knows_them_all(
    own: dict[str, Any], place: str | None, validator: jsonschema.Draft202012Validator
) -> None:
    errors = [error.json_path for error in validator.iter_errors({"extends": "other.yaml", **own})]
    assert errors == ([] if place is None else [place])


def test_the_schema_explains_every_key() -> None:
    schema = scenario_schema()
    settings = {"Scenario": schema["else"], "extending": schema["then"], **schema["$defs"]}
    unexplained = [
        f"{title}.{key}"
        for title, definition in settings.items()
        for key, value in definition.get("properties", {}).items()
        if key != "name" and not {**schema["$defs"].get(value.get("$ref", "")[8:], {}), **value}.get("description")
    ]
    assert unexplained == []


def test_the_list_has_every_registered_name_with_a_sentence(capsys: Capture) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for kind in registry.KINDS:
        assert f"{kind}\n" in printed
        for name in registry.names(kind):
            assert registry.first_sentence(kind, name) in printed


def test_the_list_of_one_kind_holds_nothing_else(capsys: Capture) -> None:
    assert main(["list", "protocols"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading == "protocols"
    assert [line.split()[0] for line in lines] == list(registry.names("protocols"))


@pytest.mark.parametrize("columns", [60, 100])
def test_on_a_terminal_a_sentence_is_folded_in_its_column(
    columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["list", "protocols"]) == 0
    _, *piped = capsys.readouterr().out.splitlines()
    assert max(map(len, piped)) > columns  # else there is nothing to fold
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["list", "protocols"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    indent = 4 + max(map(len, registry.names("protocols")))
    assert all(line[:indent].isspace() or line[2] != " " for line in lines)
    words = [word for line in lines for word in line.split()]
    assert words == [word for line in piped for word in line.split()]


def test_the_list_has_the_radio_profiles_with_their_rates(capsys: Capture) -> None:
    assert main(["list", "profiles"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading == "profiles"
    assert [line.split()[0] for line in lines] == list(profiles())
    assert "  nb_iot_nb1            62.5 kbit/s up, 26.15 kbit/s down (radio fixed)." in lines
