"""The word for a processor: all that libraries and kernels choose their arithmetic by, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch

from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.serial import Serial
from fedsim.learning.kernels import processor
from fedsim.learning.kernels.processor import VARIABLES, instruction_set

AVX2 = ("avx", "avx2", "fma")
AVX512 = (*AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")


class Simulated(NamedTuple):
    """A processor, as far as anybody looks at it."""

    vendor: str
    features: tuple[str, ...]
    aten: str
    tiles: bool = False
    core: str = "some"


PROCESSORS = {
    "amd-sse+kernels=none": Simulated("amd", ("sse2",), "DEFAULT"),
    "amd-avx+kernels=none": Simulated("amd", ("avx",), "DEFAULT"),
    "intel-avx-fma": Simulated("intel", ("avx", "fma"), "DEFAULT"),
    "amd-avx2": Simulated("amd", AVX2, "AVX2"),
    "intel-avx2": Simulated("intel", AVX2, "AVX2"),
    "intel-avx512f": Simulated("intel", (*AVX2, "avx512f"), "DEFAULT"),
    "amd-avx512": Simulated("amd", AVX512, "AVX512"),
    "intel-avx512": Simulated("intel", AVX512, "AVX512"),
    "amd-avx512-bf16": Simulated("amd", (*AVX512, "avx512bf16"), "AVX512"),
    "intel-avx512-bf16": Simulated("intel", (*AVX512, "avx512bf16"), "AVX512"),
    "intel-avx512-bf16-amx": Simulated("intel", (*AVX512, "avx512bf16"), "AVX512", tiles=True),
    "amd-avx512+aten=avx2": Simulated("amd", AVX512, "AVX2"),
    "amd-avx2+aten=default": Simulated("amd", AVX2, "DEFAULT"),
    "arm-neon-apple-m1": Simulated("arm", ("neon",), "DEFAULT", core="apple-m1"),
    "arm-neon-neoverse-n1": Simulated("arm", ("neon",), "DEFAULT", core="neoverse-n1"),
    "arm-sve-neoverse-v1": Simulated("arm", ("neon", "sve"), "SVE256", core="neoverse-v1"),
}


def simulate(monkeypatch: pytest.MonkeyPatch, one: Simulated) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(processor, "vendor", lambda: one.vendor)
    monkeypatch.setattr(processor, "has_tiles", lambda: one.tiles)
    monkeypatch.setattr(processor.llvm, "get_host_cpu_features", lambda: dict.fromkeys(one.features, True))
    monkeypatch.setattr(processor.llvm, "get_host_cpu_name", lambda: one.core)
    monkeypatch.setattr(processor.torch.backends.cpu, "get_cpu_capability", lambda: one.aten)


@pytest.mark.parametrize(("word", "one"), PROCESSORS.items(), ids=PROCESSORS)
def test_a_processor_has_its_word(word: str, one: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch, one)
    assert instruction_set() == word
    assert Serial.numeric_family("cpu").endswith(f"/cpu/{word}")
    assert Serial.numeric_family("cpu") == Processes.numeric_family("cpu")


def test_two_processors_that_agree_in_all_that_is_looked_at_are_one_family(monkeypatch: pytest.MonkeyPatch) -> None:
    families = set()
    for more, core in (((), "znver4"), (("avx512vnni", "sha"), "znver5")):
        simulate(monkeypatch, Simulated("amd", (*AVX512, *more), "AVX512", core=core))
        families.add(Serial.numeric_family("cpu"))
    assert len(families) == 1


@pytest.mark.parametrize("name", VARIABLES)
def test_what_a_user_has_chosen_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch, PROCESSORS["intel-avx512"])
    monkeypatch.setenv(name, "Some/Value\n")
    assert Serial.numeric_family("cpu").endswith(f"/intel-avx512+{name.lower()}=some_value_")
    monkeypatch.setenv(name, "")
    assert instruction_set() == "intel-avx512"


@pytest.mark.parametrize(
    ("capability", "word"), [((8, 0), "cuda-sm80"), ((9, 0), "cuda-sm90"), (None, "cuda")], ids=str
)
def test_a_gpu_counts_by_its_generation(
    capability: tuple[int, int] | None, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: capability is not None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert Batched.numeric_family("cuda").split("/")[-2] == word


CPUINFO = {"AuthenticAMD": "amd", "GenuineIntel": "intel", "HygonGenuine": "hygongenuine", "": "x86_64"}


@pytest.mark.parametrize(("said", "vendor"), CPUINFO.items(), ids=str)
def test_who_made_it_is_what_the_system_says(said: str, vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(processor.platform, "processor", lambda: "")
    monkeypatch.setattr(processor.Path, "read_text", lambda *_: f"processor\t: 0\nvendor_id\t: {said}\n")
    assert processor.vendor.__wrapped__() == vendor


def test_arm_is_one_maker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor.platform, "machine", lambda: "arm64")
    assert processor.vendor.__wrapped__() == "arm"
