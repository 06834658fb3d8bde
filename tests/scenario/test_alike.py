"""Words of the field that mean nothing here: what is proposed instead exists, and no name is proposed for itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedsim import registry
from fedsim.cli import main
from fedsim.errors import UserError, nearest
from fedsim.radio.fixed import profiles
from fedsim.registry import alike, hint
from fedsim.scenario.load import load
from fedsim.scenario.schema import Scenario

ROOT = Path(__file__).resolve().parents[2]
ROWS = (ROOT / "fedsim/alike.csv").read_text(encoding="utf-8").splitlines()[1:]
HALL = """\
name: hall
stop: {rounds: 1}
topology: {name: star, devices: 4}
network:
  cell:
    radio: {name: fixed, profile: lte_m_m1}
    discipline: {name: fair}
  link: {rate_bps: .inf}
devices: {classes: {sensor: {compute: {name: per_sample, seconds_per_sample: 0.001}}}}
data: {name: digits, partition: {name: iid}}
model: {name: softmax}
training: {learning_rate: 0.1, batch_size: 5}
protocols:
  - {name: fedavg, fraction: 0.5}
"""
VALUES = {
    "training.epochs": 2,
    "training.learning_rate": 0.1,
    "training.batch_size": 4,
    "stop.rounds": 3,
    "stop.target_accuracy": 0.9,
    "topology.devices": 5,
    "model.name": "mlp",
    "data.name": "glyphs",
}


def known(kind: str) -> list[str]:
    return list(profiles()) if kind == "profiles" else list(registry.names(kind))


@pytest.fixture
def hall(tmp_path: Path) -> Path:
    path = tmp_path / "hall.yaml"
    path.write_text(HALL)
    return path


@pytest.mark.parametrize("kind", sorted({row.split(",")[0] for row in ROWS}))
def test_every_word_stands_once_and_is_found(kind: str) -> None:
    words = [word for row in ROWS if row.startswith(f"{kind},") for word in row.split(",")[1].split()]
    assert sorted(words) == sorted(alike(kind))
    assert all(word == word.lower() and ("-" not in word or word.startswith("-")) for word in words)


@pytest.mark.parametrize(
    ("kind", "word", "said"),
    [
        ("protocols", "FedOpt", "(docs/protocols/fedopt.md): write {name: fedadam, fraction: 0.5}"),
        ("rules", "FedYogi", "write {name: yogi}"),
        ("protocols", "centralized", "write {name: centralised}"),
        ("protocols", "FedRep", "write {name: fedper, fraction: 0.5}"),
        ("protocols", "FedDyn", "write {name: scaffold, "),
        ("models", "ResNet18", "write {name: resnet, depth: 20}"),
        ("datasets", "Fashion-MNIST", "(docs/data/arrays.md): write {name: arrays, "),
        ("radios", "5G", "write {name: fixed, profile: nr_100mhz_private}"),
    ],
)
def test_what_is_alike_in_meaning_goes_before_what_is_spelled_alike(kind: str, word: str, said: str) -> None:
    assert said in hint(kind, word, known(kind))


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        *(("protocols", word) for word in ("ditto", "fedbn", "hierfavg", "local", "oort", "tifl", "pfedme")),
        *(("models", word) for word in ("gpt2", "mnist_cnn", "xgboost")),
        *(("profiles", word) for word in ("wifi", "lora", "ethernet")),
    ],
)
def test_of_what_is_far_off_nothing_is_proposed(kind: str, word: str) -> None:
    assert hint(kind, word, known(kind)) == ""


@pytest.mark.parametrize(
    ("word", "choice", "is_near"),
    [
        ("fedvag", "fedavg", True),
        ("mpl", "mlp", True),
        ("resnet20", "resnet", True),
        ("central", "centralised", True),
        ("learn_rate", "learning_rate", True),
        ("fedadam", "fedavg", False),
        ("fedper", "fedprox", False),
        ("fedsgd", "hfedms_d", False),
        ("imagenet", "images", False),
        ("rounds", "out", False),
    ],
)
def test_a_choice_is_near_when_few_letters_differ(word: str, choice: str, is_near: bool) -> None:
    assert nearest(word, [choice]) == (f"; did you mean {choice!r}?" if is_near else "")


KEYS = {
    "lr": ("training", "learning_rate"),
    "clients": ("topology", "devices"),
    "epochs": ("stop", "rounds"),
    "bandwidth": ("network.cell.radio", "uplink_bps"),
    "latency": ("network.link", "delay_s"),
}


def test_one_letter_counts_more_than_a_common_beginning(hall: Path) -> None:
    wrong = "protocols=[{name: fedgs, iteration: 3}]"
    with pytest.raises(UserError, match=r"unknown key; did you mean 'iterations'\?"):
        load(hall, overrides=[wrong])


@pytest.mark.parametrize("word", KEYS)
def test_a_key_by_another_word_is_found_where_it_stands(word: str, hall: Path) -> None:
    section, key = KEYS[word]
    with pytest.raises(UserError, match=rf"{section}\.{word}: unknown key; did you mean '{key}'\?"):
        load(hall, overrides=[f"{section}.{word}=1"])


@pytest.mark.parametrize(
    ("word", "path"),
    [("rounds", "stop.rounds"), ("lr", "training.learning_rate"), ("batch_size", "training.batch_size")],
)
def test_a_key_of_a_section_that_stands_beside_it_is_led_there(word: str, path: str, hall: Path) -> None:
    with pytest.raises(UserError, match=rf"--set {word}=1: {word}: unknown key; did you mean '{path}'\?"):
        load(hall, overrides=[f"{word}=1"])


def test_every_key_that_is_proposed_is_one() -> None:
    there = set(re.findall(r'"(\w+)":', str(Scenario.model_json_schema()).replace("'", '"')))
    assert {key for row in alike("keys").values() for key in row.write.split()} <= there


def test_every_option_that_is_proposed_is_one(hall: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    proposed = {row.write for row in alike("options").values()}
    assert not options & alike("options").keys()
    assert {write.split()[0] for write in proposed if write.startswith("--")} <= options
    for write in proposed:
        for key in re.findall(r"--set ([\w.]+)=VALUE", write):
            load(hall, overrides=[f"{key}={VALUES[key]}"])


@pytest.mark.parametrize("kind", ["options", "commands"])
def test_every_command_that_is_proposed_is_one(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    told = capsys.readouterr().out
    commands = set(re.findall(r"^    (\w+) +[A-Z]", told, re.MULTILINE))
    assert commands and not commands & alike(kind).keys()
    for row in alike(kind).values():
        if row.write.startswith("fedsim ") and "COMMAND" not in row.write:
            assert row.write.split()[1] in {*commands, "--help", "--version"}
