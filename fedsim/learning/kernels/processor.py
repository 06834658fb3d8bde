"""This processor, in the word by which libraries and kernels choose their arithmetic: ``amd-avx2``, ``arm-neon-...``.

What chooses, and what it looks at:

* PyTorch's own loops (ATen) take AVX2, AVX-512 or SVE; it says which, as ``ATEN_CPU_CAPABILITY`` may ask for less;
* oneDNN goes by the same levels, by bfloat16 and by tiles (AMX), as far as ``ONEDNN_MAX_CPU_ISA`` lets it;
* MKL goes by who made the processor, too; on Arm, OpenBLAS goes by the core;
* OpenBLAS and numpy's own loops count because they make some data sets that are trained on;
* the kernels of this package go by registers, bfloat16, tiles and AMD (`machine_code`).

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

import llvmlite.binding as llvm
import torch

__all__ = ["VARIABLES", "fuses", "has_bfloat16", "has_tiles", "instruction_set", "is_amd", "vendor"]

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
    features = {name for name, there in llvm.get_host_cpu_features().items() if there}
    parts = _on_arm(features) if vendor() == "arm" else _on_x86(features)
    chosen = []
    capability = torch.backends.cpu.get_cpu_capability()
    if capability != _ATEN.get(parts[1], "DEFAULT"):
        chosen.append(f"aten={_plain(capability)}")
    chosen += [f"{name.lower()}={_plain(environment[name])}" for name in VARIABLES if environment.get(name)]
    return "+".join(["-".join(parts), *chosen])


def _on_x86(features: set[str]) -> list[str]:
    level = next((level for level, needed in _LEVELS.items() if features.issuperset(needed)), "sse")
    more = {"fma": level == "avx" and "fma" in features, "bf16": "avx512bf16" in features, "amx": has_tiles()}
    return [vendor(), level, *(name for name, there in more.items() if there)]


def _on_arm(features: set[str]) -> list[str]:
    return ["arm", "sve" if "sve" in features else "neon", _plain(llvm.get_host_cpu_name())]


def _plain(text: str) -> str:
    """Fit for a key and a message."""
    return re.sub(r"[^a-z0-9_.,=-]", "_", text.lower())


@cache
def vendor() -> str:
    """Who made the processor: ``amd``, ``intel`` or another name; ``arm`` for all with that instruction set."""
    machine = platform.machine().lower()
    if machine in ("aarch64", "arm64"):
        return "arm"
    said = platform.processor()
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        said = next((line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")), said)
    known = [name for mark, name in _VENDORS.items() if mark in said]
    return known[0] if known else "intel" if sys.platform == "darwin" else _plain(said) or machine


def fuses() -> bool:
    """Whether the processor has a fused multiply-add, as all have had since 2013; without one, kernels crawl."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("fma") or features.get("neon"))


@cache
def has_tiles() -> bool:
    """Whether the processor has tiles, and the system lets this process use them, and its children."""
    features = llvm.get_host_cpu_features()
    if sys.platform != "linux" or not (features.get("amx-tile") and features.get("amx-bf16")):
        return False
    return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0)


@cache
def has_bfloat16() -> bool:
    """Whether oneDNN and kernels multiply numbers of bfloat16 in instructions of AVX-512.

    False too where a user allows oneDNN fewer.
    """
    limited = any(os.environ.get(name) for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"))
    return bool(llvm.get_host_cpu_features().get("avx512bf16")) and not limited


def is_amd() -> bool:
    """Whether AMD made the processor."""
    return vendor() == "amd"
