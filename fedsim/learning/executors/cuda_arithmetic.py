"""How CUDA computes within an executor: in what float32 products are made, and by nothing that depends on chance.

Both are switches of the whole process, so they are thrown for as long as an executor computes, and then put back. On
the CPU nothing is touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.deterministic

from fedsim.errors import UserError

__all__ = ["arithmetic", "repeatable"]


@contextmanager
def arithmetic(torch_device: str, precision: str) -> Iterator[None]:
    """Within, products of float32 on ``cuda`` are in TF32 if that is the *precision*, and in float32 if it is not.

    TF32 rounds factors to 10 bits of mantissa and adds up in float32 (NVIDIA A100 Tensor Core GPU Architecture, 2020).
    cuDNN takes algorithms that give the same bits again, and chooses them without trying.
    """
    if torch_device != "cuda":
        yield
        return
    _fix_workspace()
    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    tf32 = precision == "tf32"
    wanted = [
        (matmul, "allow_tf32", tf32),
        (cudnn, "allow_tf32", tf32),
        (cudnn, "deterministic", True),
        (cudnn, "benchmark", False),
    ]
    before = [getattr(owner, name) for owner, name, _ in wanted]
    try:
        for owner, name, value in wanted:
            setattr(owner, name, value)
        yield
    finally:
        for (owner, name, _), value in zip(wanted, before, strict=True):
            setattr(owner, name, value)


@contextmanager
def repeatable(torch_device: str) -> Iterator[None]:
    """Within, torch takes only algorithms that give the same bits again on ``cuda``, whatever the module does.

    New memory is not filled, as torch would do there: no operation here reads what nobody wrote. Raises `UserError`
    when an operation has no such algorithm.
    """
    if torch_device != "cuda":
        yield
        return
    _fix_workspace()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False
    try:
        yield
    except RuntimeError as error:
        if "does not have a deterministic implementation" not in str(error):
            raise
        reason = str(error).split(",")[0]
        raise UserError(
            f"--torch-device cuda: the model cannot be trained there with the same result each time ({reason}); "
            "leave the option out to train on the CPU"
        ) from None
    finally:
        memory.fill_uninitialized_memory = filled
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _fix_workspace() -> None:
    """Say how much memory cuBLAS has for its products: torch asks for it where algorithms are to be deterministic.

    It is read once, at the first product, and decides which algorithm is chosen: so it is said before any.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
