"""The recipes of docs/recipes: each file as it stands on its page, in a folder outside of the package."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from digit_runs import weights
from pages import ROOT, columns, fenced, files

from fedsim.cli import main
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.scenario.load import load

FOLDER = ROOT / "docs/recipes"
PAGES = [page for page in sorted(FOLDER.glob("*.md")) if page.name != "README.md"]
EVERY_RECIPE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
LONGEST = 40
NO_QUEUE = "network.link.rate_bps=.inf"
INITIAL = "{name: fedavg, label: initial, stop: {rounds: 1}, training: {learning_rate: 1.0e-18, batch_size: 8}}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands on all pages, in a folder where commands are run."""
    for page in (FOLDER / "README.md", *PAGES):
        for name, content in files(page).items():
            (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def code(page: Path) -> str:
    [name] = [name for name in files(page) if name.endswith(".py")]
    return name


def the_command(page: Path) -> list[str]:
    [command] = [text for text in fenced(page, "text") if text.startswith("fedsim run")]
    return shlex.split(command)[1:]


def trained(page: str, protocols: str, *changes: str) -> Results:
    """A run of the page's scenario with other protocols, in the plain loop: a few clients on a small model."""
    few = ["stop.rounds=2", "topology.devices=4"]
    changed = [f"protocols=[{protocols}]", *few, *changes]
    [scenario] = [name for name in files(FOLDER / page) if name.endswith(".yaml")]
    return run(load(scenario, overrides=changed), out=Path("out"), executor="serial")


def step(results: Results, protocol: str, begin: str = "initial") -> dict[str, torch.Tensor]:
    """How far the final model of *protocol* is from that of another one."""
    before = weights(results, begin)
    return {name: tensor - before[name] for name, tensor in weights(results, protocol).items()}


def norm(change: dict[str, torch.Tensor]) -> float:
    return sum(float(tensor.double().square().sum()) for tensor in change.values()) ** 0.5


@EVERY_RECIPE
def test_a_recipe_is_short(page: Path) -> None:
    assert len(files(page)[code(page)].splitlines()) <= LONGEST


@EVERY_RECIPE
@pytest.mark.slow
def test_every_command_takes_a_recipe_and_its_costs_are_those_on_the_page(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = the_command(page)
    for more in (["validate", words[1]], ["describe", words[1]]):
        assert main(more) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main([*words, "--no-training", "--quiet"]) == 0, capsys.readouterr().err
    [shown] = [text for text in fenced(page, "text") if text.startswith("| protocol")]
    on_the_page, costs = columns(shown), columns(capsys.readouterr().out)
    assert on_the_page.keys() - costs.keys() == {"accuracy", "loss"}
    assert costs == {name: on_the_page[name] for name in costs}


@EVERY_RECIPE
@pytest.mark.long
def test_a_recipe_trains_as_well_as_the_page_says(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*the_command(page), "--quiet"]) == 0
    [shown] = [text for text in fenced(page, "text") if text.startswith("| protocol")]
    found, wanted = columns(capsys.readouterr().out)["accuracy"], columns(shown)["accuracy"]
    assert [float(value) for value in found] == pytest.approx([float(value) for value in wanted], abs=0.05)


@pytest.mark.slow
def test_nesterov_goes_beyond_the_mean_by_its_share_of_the_way_from_the_last_one() -> None:
    """Steps of 1.25 take the same first step, and so show what the second mean is."""
    everybody = "name: fedavg, fraction: 1.0"
    nesterov = f"{everybody}, server: {{path: nesterov.py:Nesterov, beta: 0.25}}"
    longer = f"{everybody}, server: {{name: momentum, beta: 0.0, learning_rate: 1.25}}"
    once, initial = "stop: {rounds: 1}", INITIAL.replace("fedavg,", "fedavg, fraction: 1.0,", 1)
    first = f"{{{everybody}, {once}}}, {{{nesterov}, {once}, label: ahead}}, {{{longer}, {once}, label: longer once}}"
    both = f"{{{nesterov}, label: nesterov}}, {{{longer}, label: longer}}"
    results = trained("rule.md", f"{initial}, {first}, {both}")
    mean, ahead, same = (step(results, name) for name in ("fedavg", "ahead", "longer once"))
    second, from_first = step(results, "nesterov", "ahead"), step(results, "longer", "longer once")
    assert norm(mean) > 0.1
    for name, change in mean.items():
        assert ahead[name] == pytest.approx(1.25 * change, abs=1e-6), name
        assert same[name] == pytest.approx(ahead[name], abs=1e-6), name
        to_the_mean = from_first[name] / 1.25
        from_mean_to_mean = 0.25 * change + to_the_mean
        assert second[name] == pytest.approx(to_the_mean + 0.25 * from_mean_to_mean, abs=1e-5), name


@pytest.mark.slow
def test_a_clipped_update_has_the_norm_of_its_bound_and_the_old_direction() -> None:
    one = "name: fedavg, clients: 1, stop: {rounds: 1}"
    clipped = "server: {path: clipped.py:ClippedMean, bound: 0.0625}"
    loose = "server: {path: clipped.py:ClippedMean, bound: 1000.0}"
    initial = INITIAL.replace("fedavg,", "fedavg, clients: 1,", 1)
    protocols = f"{initial}, {{{one}}}, {{{one}, label: clipped, {clipped}}}, {{{one}, label: loose, {loose}}}"
    results = trained("operation.md", protocols)
    whole, short, same = (step(results, name) for name in ("fedavg", "clipped", "loose"))
    assert norm(whole) > 0.1
    assert norm(short) == pytest.approx(0.0625, rel=1e-4)
    for name, change in whole.items():
        assert short[name] == pytest.approx(change * (0.0625 / norm(whole)), abs=1e-6), name
        assert same[name] == pytest.approx(change, abs=1e-6), name


@pytest.mark.slow
def test_a_client_on_its_own_keeps_the_extractor_that_would_come_back_to_it() -> None:
    """With one device, the private extractor is the one that FedAvg would send there again."""
    private = "exchange: {path: own_extractor.py:OwnExtractor}"
    alone = "name: composed, cohort: {name: random, clients: 1}"
    initial = INITIAL.replace("fedavg,", "fedavg, clients: 1,", 1)
    protocols = f"{initial}, {{{alone}, label: whole}}, {{{alone}, label: private, {private}}}"
    results = trained("exchange.md", protocols, "topology.devices=1")
    whole, kept = step(results, "whole"), step(results, "private")
    for name, change in whole.items():
        of_extractor = name.startswith("extractor.")
        assert kept[name] == pytest.approx(torch.zeros_like(change) if of_extractor else change, abs=1e-6), name
    assert norm({name: change for name, change in whole.items() if name.startswith("extractor.")}) > 0.1
    table = load("plant.yaml").model.table((1, 8, 8), 10)
    sent = results.rounds.groupby("protocol")[["uplink_bytes", "downlink_bytes"]].max()
    assert sent.loc["private"].tolist() == [2 * table.bytes("classifier")] * 2
    assert sent.loc["whole"].tolist() == [2 * table.bytes()] * 2


def test_a_codec_that_would_write_what_is_private_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    codec = "protocols.2.codec={path: eight_bits.py:EightBits}"
    words = ["run", "own_extractor.yaml", "--out", "out", "--no-training", "--quiet", "--set", codec]
    assert main(words) == 2
    assert "'eight_bits' would write the private extractor too; choose float32" in capsys.readouterr().err


@pytest.mark.slow
def test_eight_bits_are_a_byte_for_each_number_and_whole_steps() -> None:
    one = "{name: fedavg, clients: 1, stop: {rounds: 1}, label: coded, codec: {path: eight_bits.py:EightBits}}"
    results = trained("codec.md", f"{INITIAL.replace('fedavg,', 'fedavg, clients: 1,', 1)}, {one}")
    change = step(results, "coded")
    sent = results.rounds.set_index("protocol")["uplink_bytes"]
    assert sent["coded"] == sum(tensor.numel() + 4 for tensor in change.values())
    assert sent["initial"] == sum(4 * tensor.numel() for tensor in change.values())
    for name, tensor in change.items():
        steps = 127 * tensor / tensor.abs().max()
        assert steps.abs().max() > 126.9 and steps.round().unique().numel() > 4
        assert steps == pytest.approx(steps.round(), abs=0.01), name


@pytest.mark.long
def test_a_buffer_of_one_takes_every_client_as_soon_as_it_is_back() -> None:
    """Two devices go to and fro, each in its own time, so the rounds end at the multiples of both times, merged."""
    schedule = "schedule: {path: buffered.py:Buffered, buffer: 1}"
    both = "name: composed, cohort: {name: random, fraction: 1.0}"
    steady = "devices.classes.sensor.compute={name: per_sample, seconds_per_sample: 0.01}"
    protocols = f"{{{both}, label: buffered, {schedule}}}, {{{both}, label: wait, stop: {{rounds: 1}}}}"
    changes = [
        "topology.devices=2",
        "data.partition={name: quantity_skew, alpha: 1.0}",
        steady,
        NO_QUEUE,
        "stop={rounds: 9}",
    ]
    results = trained("schedule.md", protocols, *changes)
    rounds = results.rounds.set_index("protocol")
    ends, [slow] = rounds.loc["buffered", "sim_time_s"].tolist(), [rounds.loc["wait", "sim_time_s"]]
    fast = ends[0]
    assert fast < 0.9 * slow
    multiples = sorted([count * time_s for count in range(1, 10) for time_s in (fast, slow)])
    assert ends == pytest.approx(multiples[:9])
    assert rounds.loc["buffered", "accuracy"].iloc[-1] > rounds.loc["wait", "accuracy"]


@pytest.mark.slow
def test_a_buffer_of_all_is_the_schedule_that_waits() -> None:
    schedule = "schedule: {path: buffered.py:Buffered, buffer: 4}"
    both = "name: composed, cohort: {name: random, fraction: 1.0}"
    results = trained("schedule.md", f"{{{both}, label: wait}}, {{{both}, label: buffered, {schedule}}}", NO_QUEUE)
    rounds = results.rounds.set_index(["protocol", "round"]).drop(columns=["closed_by", "closed_by_index"])
    assert rounds.loc["wait"].equals(rounds.loc["buffered"])
    assert norm(step(results, "buffered", "wait")) == 0.0


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(["mypy", "--follow-imports=silent"], marks=pytest.mark.long),  # reads half of the package
        ["ruff", "check", "--config", "pyproject.toml", "--extend-ignore", "D1"],
        ["ruff", "format", "--check", "--config", "pyproject.toml"],
    ],
    ids=" ".join,
)
def test_recipes_are_typed_strictly_and_in_the_one_style(folder: Path, tool: list[str]) -> None:
    command = [sys.executable, "-m", *tool, *(str(folder / code(page)) for page in PAGES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
