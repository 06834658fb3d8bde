"""Which executor trains follows from the model and the torch device; a run says which, and why, before it trains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch

from fedsim import registry
from fedsim.errors import UserError
from fedsim.experiment import host as host_module
from fedsim.experiment.host import Host, HostOptions, Training, cores, host_for
from fedsim.experiment.observer import Observer
from fedsim.experiment.run import run
from fedsim.learning import executors
from fedsim.learning.executors import torch_devices
from fedsim.learning.executors.choice import PRECISIONS, TORCH_DEVICES, ByProtocol, choose
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.serial import Serial
from fedsim.learning.kernels.processor import instruction_set
from fedsim.models.fusion import fused
from fedsim.models.small_cnn import SmallCnn
from fedsim.models.table import ModelTable

IMAGE = ((1, 28, 28), 62)
MANY = "as many as there are cores"
MODELS: dict[str, tuple[tuple[tuple[int, ...], int], dict[str, Any], str]] = {
    # samples and classes, settings, and what `auto` stands for
    "softmax": (IMAGE, {}, "batched"),
    "mlp": (IMAGE, {}, "batched"),
    "small_cnn": (IMAGE, {}, "batched"),
    "hfedms_cnn": (IMAGE, {}, "batched"),
    "fedgs_cnn": (IMAGE, {}, "batched"),
    "leaf_cnn": (IMAGE, {}, "batched"),
    "vgg": (((3, 32, 32), 10), {}, "processes"),
    "resnet": (((3, 32, 32), 10), {}, "processes"),
    "char_cnn": (((1014,), 4), {}, "processes"),
    "vdcnn": (((1024,), 4), {}, "processes"),
    "conv1d": (((2, 1024), 5), {}, "processes"),
    "gru": (((14, 30), 4), {}, "processes"),
    "lstm": (((14, 30), 4), {}, "processes"),
    "torch_module": (((1, 8, 8), 10), {"path": "net.py:Net"}, "processes"),
}
NET = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(64, 10))
"""


@pytest.fixture(autouse=True)
def a_net_of_ones_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.mktemp("net")
    (folder / "net.py").write_text(NET)
    monkeypatch.chdir(folder)


def table(name: str) -> ModelTable:
    (shape, classes), settings, _ = MODELS[name]
    if "path" in settings:
        settings = {"path": str(Path.cwd() / settings["path"])}
    made: ModelTable = registry.load("models", name)(**settings).table(shape, classes)
    return made


def trains(model: str, **options: Any) -> Training:
    training = host_for(HostOptions(**options), [table(model)], learn=True).training
    assert training is not None
    return training


# -- the rules --------------------------------------------------------------------------------------------------------


def test_the_rules_are_tried_on_every_model_that_can_be_trained() -> None:
    assert set(MODELS) == set(registry.names("models")) - {"declared"}


@pytest.mark.parametrize("model", MODELS)
def test_auto_goes_by_the_model(model: str) -> None:
    choice = choose("auto", [table(model)], "cpu")
    assert choice.name == MODELS[model][2]
    assert choice.remark is None, "the reason has said it"
    if choice.name == "processes":
        assert choice.reason.startswith("batched cannot take the model: it has no arithmetic for ")


@pytest.mark.parametrize(
    ("name", "layer"),
    [("resnet", "bn1 (batch_norm2d(channels=16))"), ("lstm", "lstm1 (lstm(inputs=14, hidden=64))")],
)
def test_the_reason_names_what_is_not_known(name: str, layer: str) -> None:
    assert choose("auto", [table(name)], "cpu").reason == (
        f"batched cannot take the model: it has no arithmetic for layer {layer}"
    )


@pytest.mark.parametrize("model", MODELS)
def test_on_cuda_auto_is_what_computes_there(model: str) -> None:
    choice = choose("auto", [table(model)], "cuda")
    assert choice.name == "batched"
    assert (choice.remark is None) == (MODELS[model][2] == "batched")


@pytest.mark.parametrize("torch_device", TORCH_DEVICES)
@pytest.mark.parametrize("asked", ["serial", "processes", "batched"])
def test_what_is_asked_for_is_taken(asked: str, torch_device: str) -> None:
    for model in ("mlp", "resnet"):
        choice = choose(asked, [table(model)], torch_device)
        assert (choice.name, choice.reason) == (asked, "it was asked for")
        assert (choice.remark is not None) == (asked == "batched" and model == "resnet")


def test_choosing_loads_no_torch() -> None:
    code = """
import sys
from fedsim.learning.executors.choice import choose
from fedsim.models.small_cnn import SmallCnn
print(choose("auto", [SmallCnn().table((1, 28, 28), 10)], "cpu").name, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["batched", "False"]


# -- this machine -----------------------------------------------------------------------------------------------------


@contextmanager
def on_one_core() -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no process to a core")
def test_only_the_cores_that_this_process_may_use_are_counted() -> None:
    with on_one_core():
        assert cores() == 1
        assert trains("resnet").workers == 1


@pytest.mark.parametrize("model", ["mlp", "resnet"])
def test_cores_decide_how_many_workers_there_are_and_nothing_else(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for number in (1, 2, 64):
        monkeypatch.setattr(host_module, "cores", lambda number=number: number)
        found[number] = trains(model)
    assert [found[number].workers for number in found] == [1, 2, 64]
    assert len({training.numeric_family for training in found.values()}) == 1
    assert len({training.choice for training in found.values()}) == 1


def test_as_many_workers_as_are_asked_for() -> None:
    assert trains("resnet", workers=3).workers == 3
    assert trains("resnet", workers=3).numeric_family == trains("resnet", workers=1).numeric_family


def test_serial_is_one_process_on_any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "cores", lambda: 64)
    assert trains("mlp", executor="serial").workers == 1
    assert trains("mlp", executor="serial", workers=1).workers == 1


class Anywhere(Processes):
    """Computes on a GPU as well."""

    torch_devices = TORCH_DEVICES


def test_a_cuda_device_is_fed_by_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(executors.REGISTRY, "anywhere", f"{__name__}:Anywhere")
    monkeypatch.setattr(host_module, "cores", lambda: 64)
    monkeypatch.setattr(torch_devices, "why_absent", lambda torch_device: None)
    assert trains("mlp", executor="anywhere").workers == 64
    assert trains("mlp", executor="anywhere", torch_device="cuda").workers == 1
    with pytest.raises(UserError) as refusal:
        trains("mlp", executor="anywhere", torch_device="cuda", workers=2)
    assert str(refusal.value) == "--workers 2: on torch device 'cuda' one process trains; leave --workers out"


def test_the_plain_loop_has_the_same_family_in_one_process_and_in_many() -> None:
    assert trains("mlp", executor="serial").numeric_family == trains("mlp", executor="processes").numeric_family


def test_precision_and_torch_device_and_arithmetic_are_in_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(executors.REGISTRY, "anywhere", f"{__name__}:Anywhere")
    monkeypatch.setattr(torch_devices, "why_absent", lambda torch_device: None)
    options: list[dict[str, Any]] = [
        {"executor": "serial"},
        {"executor": "serial", "precision": "float64"},
        {"executor": "batched"},
        {"executor": "batched", "precision": "float64"},
        {"executor": "anywhere", "torch_device": "cuda"},
    ]
    assert len({trains("mlp", **some).numeric_family for some in options}) == len(options)
    assert (
        trains("mlp", executor="serial").numeric_family
        == f"plain-5/float32/torch{torch.__version__}/cpu/{instruction_set()}/even-work8"
    )


@pytest.mark.parametrize("model", ["mlp", "resnet", "gru"])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("executor", ["auto", *registry.names("executors")])
def test_every_executor_computes_in_every_precision(executor: str, precision: str, model: str) -> None:
    if precision != "tf32":
        assert trains(model, executor=executor, precision=precision).precision == precision
    else:
        with pytest.raises(UserError, match="it is a way to multiply on torch device 'cuda'"):
            trains(model, executor=executor, precision=precision)


def test_an_executor_of_ones_own_may_have_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Single(PlainTrainer):
        precisions = ("float32",)

    monkeypatch.setattr(Processes, "trainer", Single)
    with pytest.raises(UserError) as refusal:
        trains("gru", precision="bfloat16")
    reason = choose("auto", [table("gru")], "cpu").reason
    assert str(refusal.value) == (
        f"--precision bfloat16: executor 'processes' (auto takes it, as {reason}) does not compute in it, only in: "
        "float32; leave --precision out"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"workers": 0},
            "--workers: 0 must be a whole number from 1 to 1,024; leave it out for as many as there are cores",
        ),
        ({"torch_device": "cudo"}, "--torch-device: 'cudo' must be one of cpu, cuda; did you mean 'cuda'?"),
        (
            {"precision": "float46"},
            "--precision: 'float46' must be one of float32, float64, bfloat16, tf32; did you mean 'float64'?",
        ),
        (
            {"precision": "tf32"},
            "--precision tf32: it is a way to multiply on torch device 'cuda', not on 'cpu'; add --torch-device cuda, "
            "or leave the option out",
        ),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    for learn in (True, False):
        with pytest.raises(UserError) as refusal:
            run(digit_runs.scenario({"learn": learn}), out=tmp_path / "run", **options)
        assert str(refusal.value) == message
    assert list(tmp_path.iterdir()) == []


# -- a run's executor -------------------------------------------------------------------------------------------------


class Watched(Serial):
    """Remembers what became of it."""

    happened: list[str]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.happened.append(f"made {arguments[2]} {options['precision']} {options['workers']}")

    def close(self) -> None:
        super().close()
        self.happened.append("closed")


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What became of the executors called ``watched``."""
    monkeypatch.setitem(executors.REGISTRY, "watched", f"{__name__}:Watched")
    happened: list[str] = []
    monkeypatch.setattr(Watched, "happened", happened, raising=False)
    return happened


class InRound(Observer):
    """Raises an error after a run's second round."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def round_done(self, protocol: object, seed: int, done: Any) -> None:
        if done.number == 2:
            raise self._error


TWICE = {"seeds": [1, 2], "protocols": [{"name": "fedavg", "clients": 4}, {"name": "fedprox", "clients": 4, "mu": 0.1}]}
MADE = "made cpu float64 1"
TWO: dict[str, Any] = {"executor": "processes", "workers": 2}


def children() -> set[str]:
    """The processes that this one has started and that are there."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split())


def test_each_seed_has_an_executor_which_is_closed_before_the_next(happened: list[str], tmp_path: Path) -> None:
    scenario = digit_runs.scenario(TWICE | {"stop.rounds": 1})
    run(scenario, out=tmp_path, executor="watched", precision="float64")
    assert happened == [MADE, "closed", MADE, "closed"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_the_executor_is_closed_however_a_run_ends(
    happened: list[str], tmp_path: Path, error: type[BaseException]
) -> None:
    with pytest.raises(error):
        run(digit_runs.scenario(TWICE), out=tmp_path, executor="watched", precision="float64", observer=InRound(error))
    assert happened == [MADE, "closed"]


def test_without_training_there_is_no_executor(happened: list[str], tmp_path: Path) -> None:
    results = run(digit_runs.scenario({"learn": False}), out=tmp_path, executor="watched")
    assert happened == []
    assert (results.manifest["executor"], results.manifest["numeric_family"]) == (None, None)
    assert results.manifest["worker_peak_memory_bytes"] is None


def test_no_worker_outlives_its_run(tmp_path: Path) -> None:
    before = children()
    results = run(digit_runs.scenario({"seeds": [1, 2], "stop.rounds": 1}), out=tmp_path / "whole", **TWO)
    assert children() == before
    assert results.manifest["worker_peak_memory_bytes"] > 20e6, "python with torch takes more than that"
    with pytest.raises(KeyboardInterrupt):
        run(digit_runs.scenario(), out=tmp_path / "half", **TWO, observer=InRound(KeyboardInterrupt))
    assert children() == before


def test_one_process_has_no_workers_memory(tmp_path: Path) -> None:
    manifest = run(digit_runs.scenario(), out=tmp_path, executor="serial").manifest
    assert manifest["worker_peak_memory_bytes"] is None
    assert manifest["peak_memory_bytes"] > 20e6


# -- what is said -----------------------------------------------------------------------------------------------------


class Enough(Exception):
    """All that is wanted has been seen."""


class Listener(Observer):
    """Hears what is told before a run begins, sees the manifest as it is then, and ends the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.told: list[str] = []

    def tell(self, text: str) -> None:
        self.told.append(text)

    def begin(self, *_: object) -> None:
        self.manifest = json.loads((self._folder / "manifest.json").read_bytes())
        raise Enough


def before_training(folder: Path, changes: dict[str, Any] | None = None, **options: Any) -> Listener:
    listener = Listener(folder)
    with pytest.raises(Enough):
        run(digit_runs.scenario(changes), out=folder, observer=listener, **options)
    return listener


def test_the_manifest_says_what_trains_before_it_trains(tmp_path: Path) -> None:
    manifest = before_training(tmp_path, executor="processes", workers=2, precision="float64").manifest
    assert manifest["executor"] == {
        "name": "processes",
        "asked": "processes",
        "reason": "it was asked for",
        "remark": None,
        "workers": 2,
        "torch_device": "cpu",
        "processor": instruction_set(),
        "precision": "float64",
    }
    assert manifest["numeric_family"] == f"plain-5/float64/torch{torch.__version__}/cpu/{instruction_set()}/even-work8"
    assert manifest["worker_peak_memory_bytes"] is None


def test_auto_is_told_with_its_reason(tmp_path: Path) -> None:
    listener = before_training(tmp_path, workers=2)
    reason = "it has the arithmetic of every layer of the model"
    assert listener.told == [f"Executor: batched, 2 workers, float32 on cpu, as {reason}"]
    facts = listener.manifest["executor"]
    assert (facts["name"], facts["asked"], facts["reason"]) == ("batched", "auto", reason)


def test_one_worker_is_no_workers(tmp_path: Path) -> None:
    listener = before_training(tmp_path, executor="serial")
    assert listener.told == ["Executor: serial, 1 worker, float32 on cpu, as it was asked for"]


def test_a_run_without_training_has_nothing_to_tell(tmp_path: Path) -> None:
    assert before_training(tmp_path, {"learn": False}).told == []


def test_batched_says_when_a_model_goes_to_the_plain_loop() -> None:
    lack = choose("auto", [table("gru")], "cpu").reason.removeprefix("batched cannot take the model: ")
    assert choose("batched", [table("gru")], "cpu").remark == (
        f"batched cannot take the model ({lack}), so every client is trained in the plain loop"
    )


SMALL = SmallCnn().table((1, 28, 28), 10)
FUSED = {"fusing": ByProtocol((fused(SMALL, "multi"),), trains_alone=True)}
IN_THE_PLAIN_LOOP = (
    "batched trains in the plain loop, client by client: fusing (batched cannot take its model: it has no arithmetic "
    "for layer fusion (fusion(channels=32, operator=multi)))"
)


@pytest.mark.parametrize("torch_device", TORCH_DEVICES)
@pytest.mark.parametrize("asked", ["auto", "batched"])
def test_a_model_that_a_protocol_has_adapted_changes_the_remark_and_no_choice(asked: str, torch_device: str) -> None:
    tables = [table("small_cnn")]
    without, choice = choose(asked, tables, torch_device), choose(asked, tables, torch_device, FUSED)
    assert choice == without._replace(remark=IN_THE_PLAIN_LOOP)
    as_it_is = {"as it is": ByProtocol((tables[0],), trains_alone=False)}
    assert choose(asked, tables, torch_device, as_it_is) == without
    for names, whose in (("ab", "a, b (their"), ("a", "a (its")):
        look = {name: ByProtocol((SMALL,), trains_alone=True) for name in names}
        assert choose(asked, tables, torch_device, look).remark == (
            f"batched trains in the plain loop, client by client: {whose} objective looks at what models make of "
            "mini-batches, or moves weights)"
        )
    assert choose("serial", tables, torch_device, FUSED) == choose("serial", tables, torch_device)
    assert choose("auto", [table("gru")], "cpu", FUSED) == choose("auto", [table("gru")], "cpu")


def test_the_remark_is_told_and_kept(tmp_path: Path) -> None:
    own = {"model": {"name": "torch_module", "path": f"{Path.cwd() / 'net.py'}:Net"}}
    listener = before_training(tmp_path, own, executor="batched", workers=1)
    first, second = listener.told
    assert first == "Executor: batched, 1 worker, float32 on cpu, as it was asked for"
    assert second.startswith("Remark: batched cannot take the model (")
    assert f"Remark: {listener.manifest['executor']['remark']}" == second


def test_the_options_precisions_are_those_that_trainers_have() -> None:
    had = {one for name in registry.names("executors") for one in registry.load("executors", name).trainer.precisions}
    assert had == set(PRECISIONS)


def test_a_host_that_learns_nothing_has_no_arithmetic() -> None:
    assert Host(None, 1.0).numeric_family is None
