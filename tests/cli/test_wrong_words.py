"""A wrong command, option or argument is one message that helps and exit status 2; nothing is written, nothing changed.

In expected messages three dots stand for anything on that line.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from refusals import PLANT, Refusals, everything_in, lay_out
from said import assert_said
from tiny_results import rounds_of, write_results

OPTIONS: dict[str, tuple[list[str], str]] = {
    "--set of no section": (
        ["--set", "trainig.epochs=2"],
        "--set trainig.epochs=2: trainig: unknown key; did you mean 'training'? (keys: ...)",
    ),
    "--set of no key": (
        ["--set", "training.epoch=2"],
        "--set training.epoch=2: training.epoch: unknown key; did you mean 'epochs'? (keys: ...)",
    ),
    "--set to what does not fit": (
        ["--set", "model={name: hfedms_cnn}"],
        "--set model={name: hfedms_cnn}: model: model 'hfedms_cnn' needs samples of shape (1, 28, 28), ...",
    ),
    "--only of no protocol": (
        ["--only", "fedprx"],
        "--only: the scenario has no protocol 'fedprx'; did you mean 'fedprox'? (protocols: ...)",
    ),
    "--only what does not fit": (
        ["--only", "fedprox", "--set", "devices.classes.plc={compute: {name: per_sample, seconds_per_sample: 1}}"],
        "plant.yaml:12: devices.default: sensor 'sensor-1' has no device class; ...",
    ),
    "--seeds that are equal": (["--seeds", "1,1"], "--set seeds=[1, 1]: seeds: [1, 1] must differ from each other"),
    "--executor of no name": (
        ["--executor", "seriel"],
        "--executor: no executor is called 'seriel'; did you mean 'serial'? (known: auto, serial, ...)",
    ),
    "--executor of no name, for nothing": (
        ["--executor", "seriel", "--no-training"],
        "--executor: no executor is called 'seriel'; did you mean 'serial'? (known: auto, serial, ...)",
    ),
    "--workers of one process": (
        ["--executor", "serial", "--workers", "2"],
        "--workers 2: executor 'serial' trains in one process; leave --workers out, or choose --executor processes, "
        "which comes to the same numbers",
    ),
    "--precision of a GPU": (
        ["--executor", "serial", "--precision", "tf32"],
        "--precision tf32: it is a way to multiply on torch device 'cuda', not on 'cpu'; add --torch-device cuda, "
        "or leave the option out",
    ),
    "--store in a file": (["--store", "notes.txt"], "notes.txt is not a folder; choose another store with --store"),
    "--out in a file": (["--out", "notes.txt"], "notes.txt is not a folder; choose another one with --out"),
    "--out in a stranger's folder": (
        ["--out", "letters"],
        "letters is not empty and is no run folder (it has letter.txt); choose another with --out",
    ),
    "--set in two words": (["--set", "seeds", "3"], "`fedsim run` takes no '3'; write --set seeds=3"),
    "--set in three words": (["--set", "seeds", "=", "3"], "`fedsim run` takes no '='; write --set seeds=3"),
    "--set with a space after its sign": (["--set", "seeds=", "[3]"], "... takes no '[3]'; write --set 'seeds=[3]'"),
    "--set to a list with a space": (["--set", "seeds=[1,", "2]"], "... takes no '2]'; write --set 'seeds=[1, 2]'"),
    "--set of two keys": (["--set", "seeds=[3]", "stop.rounds=3"], "... 'stop.rounds=3'; write --set stop.rounds=3"),
    "--set with a colon": (["--set", "seeds:", "3"], "`fedsim run` takes no '3'; write --set seeds=3"),
    "--set with a colon, in quotes": (
        ["--set", "stop.rounds: 3"],
        "--set stop.rounds: 3: is not of the form key.path=value, write stop.rounds=3",
    ),
    "--set to one value for a list": (
        ["--set", "seeds=3"],
        "--set seeds=3: seeds: 3 is a number; a list is needed: write --set 'seeds=[3]'",
    ),
    "--set to values without brackets": (
        ["--set", "seeds=1,2"],
        "--set seeds=1,2: seeds: '1,2' is text; a list is needed: write --set 'seeds=[1,2]'",
    ),
    "--set to a name for a section": (
        ["--set", "model=mlp"],
        "--set model=mlp: model: 'mlp' is text; a mapping is needed: write --set 'model={name: mlp}'",
    ),
    "--set to an accuracy in percent": (
        ["--set", "stop.target_accuracy=90"],
        "--set stop.target_accuracy=90: stop.target_accuracy: 90 must be at most 1; did you mean 0.9?",
    ),
    "--seeds without commas": (["--seeds", "1", "2", "3"], "`fedsim run` takes no '2'; write --seeds 1,2,3"),
    "an option by another word": (["--protocol", "fedavg"], "`fedsim run` takes no '--protocol'; write --only fedavg"),
    "an option by its letter": (["-o", "my runs"], "`fedsim run` takes no '-o'; write --out 'my runs'"),
    "a key for an option": (["--epochs", "3"], "`fedsim run` takes no '--epochs'; write --set training.epochs=3"),
    "a key for an option, without a value": (["--rounds"], "... takes no '--rounds'; write --set stop.rounds=VALUE"),
    "a graphics card": (["--gpu"], "`fedsim run` takes no '--gpu'; write --torch-device cuda"),
    "a configuration": (["--config", "a.yaml"], "`fedsim run` takes no '--config'; write fedsim run a.yaml"),
    "an option that nothing is like": (["--verbose"], "`fedsim run` takes no '--verbose'"),
    "no such option": (["--onyl", "fedavg"], "`fedsim run` takes no '--onyl'; did you mean '--only'?"),
    "two scenarios": (["letters/letter.txt"], "`fedsim run` takes no 'letters/letter.txt'"),
}


@pytest.mark.parametrize(("options", "message"), OPTIONS.values(), ids=OPTIONS)
def test_a_wrong_option(options: list[str], message: str, refused: Refusals) -> None:
    lay_out({"plant.yaml": PLANT, "notes.txt": "notes", "letters/letter.txt": "letter"}, refused.folder)
    refused.check("run", "plant.yaml", *options, message=message)


WORDS: dict[str, tuple[list[str], str]] = {
    "a misspelt command": (["rnu", "plant.yaml"], "there is no command 'rnu'; did you mean 'run'? (commands: ...)"),
    "a scenario for a command": (["plant.yaml"], "there is no command 'plant.yaml'; write fedsim run plant.yaml (...)"),
    "a command in capitals": (["RUN", "plant.yaml"], "there is no command 'RUN'; did you mean 'run'? (commands: ...)"),
    "a command by another word": (["train", "plant.yaml"], "there is no command 'train'; write fedsim run (...)"),
    "an option of another command": (
        ["validate", "plant.yaml", "--out", "a"],
        "`fedsim validate` takes no '--out'",
    ),
    "an option by another word that this command lacks": (
        ["validate", "plant.yaml", "--protocol", "fedavg"],
        "`fedsim validate` takes no '--protocol'",
    ),
    "a configuration to check": (
        ["validate", "--config", "plant.yaml"],
        "`fedsim validate` takes no '--config'; write fedsim validate plant.yaml",
    ),
    "a name for a kind": (
        ["list", "resnet"],
        "nothing is registered under 'resnet'; it stands under models (kinds: ...)",
    ),
    "comparing nothing": (["compare", "runs/plnat"], "there is no run folder runs/plnat; did you mean 'runs/plant'?"),
    "comparing a file": (["compare", "plant.yaml"], "plant.yaml is no run folder: it has no manifest.json"),
    "comparing any folder": (["compare", "runs"], "runs is no run folder: it has no manifest.json"),
    "no time between checkpoints": (
        ["run", "plant.yaml", "--checkpoint-interval-s", "0"],
        "--checkpoint-interval-s: 0.0 must be a number of seconds above 0, as in 30",
    ),
    "numbers in a folder": (
        ["compare", "runs/fine", "--csv", "runs"],
        "--csv: cannot write runs: it is a folder",
    ),
    "numbers nowhere": (
        ["compare", "runs/fine", "--csv", "nowhere/numbers.csv"],
        "--csv: cannot write nowhere/numbers.csv: there is no such folder",
    ),
    "numbers in a file": (
        ["compare", "runs/fine", "--csv", "plant.yaml/numbers.csv"],
        "--csv: cannot write plant.yaml/numbers.csv: plant.yaml is not a folder",
    ),
    "figures in a file": (
        ["plot", "runs/fine", "--out", "plant.yaml"],
        "plant.yaml is not a folder; choose another folder with --out",
    ),
    "a manifest that is none": (
        ["compare", "runs/list"],
        "runs/list/manifest.json is not readable as a manifest; run the scenario again, into another folder",
    ),
    "a run without its tables": (
        ["plot", "runs/plant"],
        "runs/plant has lost its rounds.parquet; run the scenario again, into another folder",
    ),
    "a misspelt kind": (
        ["list", "protcols"],
        "nothing is registered under 'protcols'; did you mean 'protocols'? (kinds: ...)",
    ),
}


@pytest.mark.parametrize(("words", "message"), WORDS.values(), ids=WORDS)
def test_a_wrong_command(words: list[str], message: str, refused: Refusals) -> None:
    manifests = {"list": "[]", "plant": '{"status": "finished", "scenario": "plant", "runs": []}'}
    files = {f"runs/{name}/manifest.json": manifest for name, manifest in manifests.items()}
    lay_out({"plant.yaml": PLANT, **files}, refused.folder)
    write_results(refused.folder / "runs/fine", [rounds_of("fedavg", 1, [0.2, 0.8])])
    refused.check(*words, message=message)


ARGUMENTS: dict[str, tuple[list[str], str]] = {
    "no scenario": (["run"], "the following arguments are required: SCENARIO"),
    "seeds that are text": (
        ["run", "plant.yaml", "--seeds", "one"],
        "argument --seeds: 'one' must be whole numbers with commas between them, as in 1,2,3",
    ),
    "an unknown torch device": (
        ["run", "plant.yaml", "--torch-device", "tpu"],
        "argument --torch-device: invalid choice: 'tpu' (choose from ...cpu..., ...cuda...)",
    ),
    "no workers": (
        ["run", "plant.yaml", "--workers", "0"],
        "argument --workers: '0' must be a whole number of at least 1, as in 2",
    ),
    "workers in words": (
        ["run", "plant.yaml", "--workers", "two"],
        "argument --workers: 'two' must be a whole number of at least 1, as in 2",
    ),
    "a target in percent": (
        ["compare", "runs/plant", "--target", "90"],
        "argument --target: '90' must be an accuracy between 0 and 1, as in 0.8; did you mean 0.9?",
    ),
}


@pytest.mark.parametrize(("words", "message"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_wrong_arguments_have_their_usage_before_the_message(words: list[str], message: str, refused: Refusals) -> None:
    lay_out({"plant.yaml": PLANT}, refused.folder)
    command = words[0]
    refused.check(*words, begins=f"usage: fedsim {command} ...\nfedsim {command}: error: ", message=message)


@pytest.mark.parametrize("executor", ["auto", "serial", "batched"])
def test_a_torch_device_that_is_not_here(refused: Refusals, monkeypatch: pytest.MonkeyPatch, executor: str) -> None:
    lay_out({"plant.yaml": PLANT}, refused.folder)
    words = ["run", "plant.yaml", "--torch-device", "cuda", "--executor", executor]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    way_out = "leave the option out to compute on the CPU"
    for cuda, why in (
        (None, f"this torch ({torch.__version__}) is built without CUDA"),
        ("12.6", f"torch {torch.__version__} finds no CUDA device here"),
    ):
        monkeypatch.setattr(torch.version, "cuda", cuda)
        refused.check(*words, message=f"--torch-device cuda: {why}; {way_out}")


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_torch_device_that_an_executor_does_not_compute_on(
    refused: Refusals, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    lay_out({"plant.yaml": PLANT}, refused.folder)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    message = (
        f"--torch-device cuda: executor {executor!r} does not compute there, only on: cpu; "
        "leave --executor out, or --torch-device"
    )
    refused.check("run", "plant.yaml", "--torch-device", "cuda", "--executor", executor, message=message)


def test_a_store_with_something_else_in_its_place(refused: Refusals) -> None:
    lay_out({"plant.yaml": PLANT, "store/metrics": "no folder"}, refused.folder)
    message = "store is not empty and is no store (it has metrics); choose another store with --store, or another ..."
    refused.check("run", "plant.yaml", "--store", "store", message=message)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "plant.yaml", "--set", "protocols.0.name=fedvag"], "... no protocol is called 'fedvag'; ..."),
        (["rnu", "plant.yaml"], "there is no command 'rnu'; ..."),
    ],
    ids=["misspelt", "no command"],
)
def test_the_process_ends_with_status_2_and_no_traceback(words: list[str], message: str, tmp_path: Path) -> None:
    lay_out({"plant.yaml": PLANT}, tmp_path)
    done = subprocess.run([sys.executable, "-m", "fedsim", *words], cwd=tmp_path, capture_output=True, text=True)
    assert_said(f"fedsim: {message}\n", done.stderr)
    assert (done.returncode, done.stdout) == (2, "")
    assert list(everything_in(tmp_path)) == [str(tmp_path / "plant.yaml")]


@pytest.mark.parametrize(
    "words",
    [
        "run plant.yaml --out=",
        "run plant.yaml --store=",
        "draw plant.yaml --out=",
        "describe plant.yaml --out=",
        "advise plant.yaml --target 0.9 --out=",
        "sweep plant.yaml --store=",
        "plot runs --out=",
        "report runs --out=",
        "export runs --to parquet --out=",
        "trace runs --out=",
        "retime runs --out=",
        "compare runs --csv=",
    ],
)
def test_a_path_to_write_to_is_not_empty(words: str, refused: Refusals) -> None:
    command, *_, option = words.split()
    message = f"...\nfedsim {command}: error: argument {option[:-1]}: the path must not be empty"
    refused.check(*words.split(), message=message, begins="usage: ")
