"""Where LLVM is missing PyTorch computes all: as near to float64 as the reference, in a numeric family of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import digit_runs
import pytest
import yaml
from random_waves import Comparison, Reference, disagreement, errors, outcome
from test_executors_agree import EXACT, EXECUTORS, FUSED, MOST_ELSEWHERE, MOST_OF_ONE_WAVE, bound, broken, drawn
from tiers import FULL, mostly_long

from fedsim.errors import UserError
from fedsim.experiment.host import HostOptions, host_for
from fedsim.experiment.observer import Observer
from fedsim.experiment.run import run
from fedsim.learning.executors.batched.conv_stacks import conv_stack_kind
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.batched.support import architecture
from fedsim.learning.executors.matrix import kernels_for
from fedsim.learning.kernels import machine_code, processor
from fedsim.learning.kernels.processor import OFF, OLDEST, instruction_set, why_no_kernels
from fedsim.models.small_cnn import SmallCnn
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round

ROOT = Path(__file__).parents[2]
MISSING = "llvmlite is not installed (pip install 'llvmlite>=0.45')"
BY_PYTORCH = "as it was asked for; by PyTorch alone, which takes 1 to 4 times (a GRU: up to 10 times) as long, as "
SMALL = SmallCnn().table((1, 28, 28), 10)


@pytest.fixture
def forgotten() -> Iterator[Callable[[], None]]:
    """Forgets what this process knows of its kernels, now, when it is called, and in the end."""

    def forget() -> None:
        processor._why_no_llvm.cache_clear()
        for kernels in ("convolution_kernels", "correction_kernel", "layer_kernel", "product_kernels"):
            getattr(machine_code, kernels).cache_clear()

    forget()
    yield forget
    forget()


@pytest.fixture
def no_kernels(forgotten: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LLVM is not there, and nobody may ask for what it makes."""
    monkeypatch.setattr(processor, "_LACK", "llvmlite is not installed")
    monkeypatch.setattr(machine_code, "Program", None)
    yield
    monkeypatch.undo()


# -- what is computed -------------------------------------------------------------------------------------------------

TOGETHER = ["small_cnn", "hfedms_cnn cut down", "wide mlp", "leaf_cnn", "hfedms_cnn"]
ALONE = dict.fromkeys([*FUSED, *TOGETHER])
EVERYTHING = [*product(["serial"], ALONE), *product(["batched"], TOGETHER), ("processes", "gru")]


def each(*now: tuple[str, str]) -> pytest.MarkDecorator:
    """All executors and models, and those named *now*."""
    return pytest.mark.parametrize(("executor", "model"), mostly_long(EVERYTHING, now=now))


@pytest.mark.usefixtures("no_kernels")
@each(
    *(("batched", "small_cnn"), ("batched", "hfedms_cnn cut down"), ("serial", "residual batch")),
    *(("serial", "series batch"), ("processes", "gru"), ("serial", "lstm")),
)
def test_updates_and_sums_are_as_near_to_float64_as_the_references(executor: str, model: str) -> None:
    ratios = []
    for seed in range(4 if FULL else 2):
        place, wave = drawn(model, seed)
        ratios.append(Comparison(EXECUTORS[executor], place).ratios(wave))
    assert broken(ratios, bound(place.table) if executor == "batched" else MOST_ELSEWHERE) == []


@pytest.mark.usefixtures("no_kernels")
@each(("batched", "small_cnn"), ("batched", "hfedms_cnn cut down"), ("serial", "lstm"))
def test_in_float64_every_tensor_is_the_references(executor: str, model: str) -> None:
    assert disagreement(EXECUTORS[executor], *drawn(model, 1)) <= EXACT


@pytest.mark.usefixtures("no_kernels")
@each(("batched", "small_cnn"), ("serial", "residual batch"), ("processes", "gru"), ("serial", "lstm"))
def test_in_bfloat16_errors_are_those_of_pytorchs_autocast(executor: str, model: str) -> None:
    place, wave = drawn(model, 1)
    true = outcome(Reference(place.table, place.dataset, precision="float64"), place, wave)
    ours, theirs = (
        errors(outcome(kind(place.table, place.dataset, precision="bfloat16"), place, wave), true).total
        for kind in (EXECUTORS[executor], Reference)
    )
    assert ours <= MOST_OF_ONE_WAVE * theirs


@pytest.mark.usefixtures("no_kernels")
def test_batched_takes_the_same_models_and_leaves_each_product_to_pytorch() -> None:
    """So `auto` need not know what is installed."""
    training = host_for(HostOptions(), [SMALL], learn=True).training
    assert training is not None and training.executor is Batched
    assert conv_stack_kind(architecture(SMALL).conv_stack, stacked=False) == "pytorch"
    assert kernels_for((2048, 3136), processor.torch.float32) is None


# -- what is said -----------------------------------------------------------------------------------------------------


def test_kernels_can_be_switched_off(forgotten: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The word for the processor is the same whether LLVM is missing or is not to be used."""
    monkeypatch.setenv(OFF, "1")
    assert why_no_kernels() == f"{OFF} is set"
    word = instruction_set()
    monkeypatch.delenv(OFF)
    forgotten()
    assert word == f"{instruction_set()}+kernels=none"
    monkeypatch.setattr(processor, "_LACK", "llvmlite is not installed")
    forgotten()
    assert (instruction_set(), why_no_kernels()) == (word, MISSING)


def test_an_llvmlite_that_is_too_old_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that another package has brought, for which nobody has asked pip to look."""
    (tmp_path / "llvmlite/binding").mkdir(parents=True)
    (tmp_path / "llvmlite/__init__.py").write_text("__version__ = '0.43.0'")
    (tmp_path / "llvmlite/binding/__init__.py").write_text("")
    code = "from fedsim.learning.kernels import machine_code, processor\nprint(processor.why_no_kernels())"
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == MISSING.replace("llvmlite is not installed", "llvmlite 0.43.0 is too old") + "\n"
    assert "llvmlite >= {}.{}\n".format(*OLDEST) in (ROOT / "setup.cfg").read_text("utf-8")


ARM = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


@pytest.mark.usefixtures("no_kernels")
def test_without_llvm_the_system_says_what_processor_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor.sys, "platform", "linux")
    for name in processor.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(processor, "has_tiles", lambda: False)
    for cpuinfo, vendor, aten, word in (
        ("flags\t: fma avx avx2 avx512f avx512_bf16\n", "amd", "DEFAULT", "amd-avx512f-bf16"),
        (ARM, "arm", "SVE256", "arm-sve-0x41-0xd40"),
    ):
        monkeypatch.setattr(processor, "vendor", lambda vendor=vendor: vendor)
        monkeypatch.setattr(processor.torch.backends.cpu, "get_cpu_capability", lambda aten=aten: aten)
        monkeypatch.setattr(processor.Path, "read_text", lambda *_, cpuinfo=cpuinfo: cpuinfo)
        assert instruction_set() == f"{word}+kernels=none"


class Interrupts(Observer):
    """Hears what is told, and ends the run after its second round."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def tell(self, text: str) -> None:
        self.told.append(text)

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        if done.number == 2:
            raise KeyboardInterrupt


def test_a_run_keeps_to_kernels_or_to_none(
    forgotten: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so first, and a store has nothing of the other kind."""
    options = {"executor": "batched", "workers": 1, "store": tmp_path / "store", "checkpoint_interval_s": 1e-9}
    scenario, listener = digit_runs.scenario(), Interrupts()
    monkeypatch.setenv(OFF, "1")
    with pytest.raises(KeyboardInterrupt):
        run(scenario, out=tmp_path / "without", observer=listener, **options)
    assert listener.told[0] == f"Executor: batched, 1 worker, float32 on cpu, {BY_PYTORCH}{OFF} is set"
    word = instruction_set()
    monkeypatch.delenv(OFF)
    forgotten()
    here = instruction_set()
    with pytest.raises(UserError) as refusal:
        run(scenario, out=tmp_path / "without", resume=True, **options)
    assert str(refusal.value).endswith(
        f"; numbers would differ, so go on where the processor and the environment come to {word} (here: {here}), "
        "or choose another folder with --out"
    )
    whole = run(scenario, out=tmp_path / "with", **options)
    assert '"event":"loaded"' not in (tmp_path / "store/ledger" / f"{whole.manifest['run']}.jsonl").read_text()
    monkeypatch.setenv(OFF, "1")
    forgotten()
    resumed = run(scenario, out=tmp_path / "without", resume=True, **options)
    assert resumed.manifest["executor"]["processor"] == word


RUN = """
import sys
sys.modules["llvmlite"] = None  # an import of it fails
from fedsim.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_command_runs_where_llvmlite_cannot_be_imported(tmp_path: Path) -> None:
    changes = {"model": {"name": "small_cnn", "channels": [4, 4], "hidden": 8}, "stop.rounds": 1}
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(digit_runs.data(changes)))
    words = ["run", str(tmp_path / "scenario.yaml"), "--out", str(tmp_path / "run")]
    words += ["--executor", "processes", "--workers", "2"]
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == f"Executor: processes, 2 workers, float32 on cpu, {BY_PYTORCH}{MISSING}"
    manifest = json.loads((tmp_path / "run/manifest.json").read_bytes())
    assert manifest["status"] == "finished"
    assert "+kernels=none/" in manifest["numeric_family"]
