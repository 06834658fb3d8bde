"""Whether there are kernels here, and the word by which libraries and kernels choose their arithmetic: ``amd-avx2``.

What chooses, and what it looks at:

* PyTorch's own loops (ATen) take AVX2, AVX-512 or SVE; it says which, as ``ATEN_CPU_CAPABILITY`` may ask for less;
* oneDNN goes by the same levels, by bfloat16 and by tiles (AMX), as far as ``ONEDNN_MAX_CPU_ISA`` lets it;
* MKL goes by who made the processor, too; on Arm, OpenBLAS goes by the core;
* OpenBLAS and numpy's own loops count because they make some data sets that are trained on;
* the kernels of this package go by registers, bfloat16, tiles and AMD (`machine_code`); without them PyTorch computes
  all, in other bits.

Left out: instructions for whole numbers only (VNNI), and the sizes of caches, by which libraries cut large products.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import torch

_LACK: str | None = None
try:
    import llvmlite
    import llvmlite.binding as llvm
except ImportError:
    llvm, _LACK = None, "llvmlite is not installed"
except OSError:
    llvm, _LACK = None, "the library of llvmlite cannot be loaded"

__all__ = [
    "OFF",
    "VARIABLES",
    "has_bfloat16",
    "has_kernels",
    "has_tiles",
    "instruction_set",
    "is_amd",
    "llvm",
    "vendor",
    "why_no_kernels",
]

OFF = "FEDSIM_NO_KERNELS"
"""A variable of the environment: set to anything, it says that PyTorch is to compute all."""
OLDEST = 0, 45
"""Version of llvmlite; an older one may have come with another package."""
if llvm is not None and tuple(map(int, llvmlite.__version__.split(".")[:2])) < OLDEST:
    llvm, _LACK = None, f"llvmlite {llvmlite.__version__} is too old"
_WAY_OUT = f"pip install 'llvmlite>={'.'.join(map(str, OLDEST))}'"
_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA = 158, 0x1023, 18
"""Of Linux on x86-64: a system call, what it is asked for, and for which registers."""
_VENDORS = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
_LEVELS = {
    "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl"),  # what PyTorch and oneDNN ask for together
    "avx512f": ("avx512f",),
    "avx2": ("avx2", "fma"),
    "avx": ("avx",),
}
"""Of x86, the highest first."""
_ATEN = {"avx512": "AVX512", "avx2": "AVX2", "sve": "SVE256"}
"""What PyTorch makes of a level, when nobody asks for less; of all others, DEFAULT."""
VARIABLES = (
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_CPU_ISA_HINTS",
    "DNNL_CPU_ISA_HINTS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "OPENBLAS_CORETYPE",
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
)
"""By which a user changes what a library chooses; what ``ATEN_CPU_CAPABILITY`` did, PyTorch says."""


def instruction_set(environment: Mapping[str, str] = os.environ) -> str:
    """Vendor, level and what else counts, as in ``intel-avx512-bf16-amx``; then what a user has chosen, each after a +.

    Two processors with the same word agree in all that is looked at.
    """
    features = _features()
    parts = _on_arm(features) if vendor() == "arm" else _on_x86(features)
    chosen = []
    capability = torch.backends.cpu.get_cpu_capability()
    if capability != _ATEN.get(parts[1], "DEFAULT"):
        chosen.append(f"aten={_plain(capability)}")
    chosen += [f"{name.lower()}={_plain(environment[name])}" for name in VARIABLES if environment.get(name)]
    chosen += [] if has_kernels() else ["kernels=none"]
    return "+".join(["-".join(parts), *chosen])


def _on_x86(features: set[str]) -> list[str]:
    level = next((level for level, needed in _LEVELS.items() if features.issuperset(needed)), "sse")
    more = {"fma": level == "avx" and "fma" in features, "bf16": "avx512bf16" in features, "amx": has_tiles()}
    return [vendor(), level, *(name for name, there in more.items() if there)]


def _on_arm(features: set[str]) -> list[str]:
    return ["arm", "sve" if "sve" in features else "neon", _plain(_core())]


def _plain(text: str) -> str:
    """Fit for a key and a message."""
    return re.sub(r"[^a-z0-9_.,=-]", "_", text.lower())


@cache
def vendor() -> str:
    """Who made the processor: ``amd``, ``intel`` or another name; ``arm`` for all with that instruction set."""
    machine = platform.machine().lower()
    if machine in ("aarch64", "arm64"):
        return "arm"
    said = _told_by_system("vendor_id") or platform.processor()
    known = [name for mark, name in _VENDORS.items() if mark in said]
    return known[0] if known else "intel" if sys.platform == "darwin" else _plain(said) or machine


def _told_by_system(fact: str) -> str:
    """A line of what Linux says of the first core; elsewhere, and where there is no such line, nothing."""
    if sys.platform != "linux":
        return ""
    lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(fact)), "")


def _core() -> str:
    """Which core it is: LLVM's name, or else the system's."""
    if _why_no_llvm() is None:
        return str(llvm.get_host_cpu_name())
    told = _told_by_system("CPU implementer"), _told_by_system("CPU part")
    return "-".join(told) if all(told) else platform.processor()


def _features() -> set[str]:
    """What instructions there are, by LLVM's names: as it says, or else as the system does."""
    if _why_no_llvm() is None:
        return {name for name, there in llvm.get_host_cpu_features().items() if there}
    if vendor() == "arm":
        return {"neon", *_told_by_system("Features").split()}
    return set(_told_by_system("flags").replace("avx512_bf16", "avx512bf16").replace("amx_", "amx-").split())


@cache
def _why_no_llvm() -> str | None:
    if os.environ.get(OFF):
        return f"{OFF} is set"
    return _LACK and f"{_LACK} ({_WAY_OUT})"


def why_no_kernels() -> str | None:
    """Why PyTorch computes all in this process, as a clause; None where there are kernels.

    Without a fused multiply-add, which all processors have had since 2013, kernels would crawl.
    """
    fuses = not _features().isdisjoint(("fma", "neon"))
    return _why_no_llvm() or (None if fuses else "this processor has no fused multiply-add")


def has_kernels() -> bool:
    """Whether LLVM may make kernels here."""
    return why_no_kernels() is None


@cache
def has_tiles() -> bool:
    """Whether the processor has tiles, and the system lets this process use them, and its children."""
    if sys.platform != "linux" or not _features().issuperset(("amx-tile", "amx-bf16")):
        return False
    return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0)


@cache
def has_bfloat16() -> bool:
    """Whether oneDNN and kernels multiply numbers of bfloat16 in instructions of AVX-512.

    False too where a user allows oneDNN fewer.
    """
    limited = any(os.environ.get(name) for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"))
    return "avx512bf16" in _features() and not limited


def is_amd() -> bool:
    """Whether AMD made the processor."""
    return vendor() == "amd"
