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

    Raises `UserError` when an operation has none.
    """
    if torch_device != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # torch asks for it, and reads it at each product
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
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
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
