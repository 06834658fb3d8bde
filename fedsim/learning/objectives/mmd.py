"""FedMMD's term (Yao, Huang and Sun, *Two-stream federated learning: Reduce the communication costs*, VCIP 2018): the
maximum mean discrepancy of the global and the local model's features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from fedsim.learning.objectives.objective import Objective
from fedsim.settings import NonNegative

__all__ = ["WIDTHS", "Mmd", "squared_mmd"]

WIDTHS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 5, 10, 15, 20, 25, 30, 35, 100, 1e3, 1e4, 1e5, 1e6)
"""s of each of the kernel's 19 Gaussians, in the authors' public code."""


class Mmd(Objective):
    """``coefficient max(floor, MMD^2(features of the global model, features of the local one))`` on each mini-batch."""

    name: Literal["mmd"] = "mmd"
    receives: ClassVar[tuple[str, ...]] = ("global",)
    features: ClassVar[tuple[str, ...]] = ("global",)
    coefficient: NonNegative = 0.1
    """lambda, the strength of the term; 0.1 in the authors' public code."""
    floor: NonNegative = 0.0
    """MMD^2 counts as at least this, and has no gradient below it; 1e-4 in the authors' public code."""

    def feature_loss(self, features: Any, others: Mapping[str, Any]) -> Any:
        """``coefficient floor`` where both models agree."""
        return self.coefficient * squared_mmd(others["global"].flatten(1), features.flatten(1)).clamp(min=self.floor)


def squared_mmd(one: Any, other: Any) -> Any:
    """``mean k(g, g') + mean k(l, l') - 2 mean k(g, l)`` over all rows g of *one* and l of *other*: (rows, numbers).

    The biased estimate: a row is compared with itself, too. It takes memory for rows x rows x numbers.
    """
    return _mean_kernel(one, one) + _mean_kernel(other, other) - 2 * _mean_kernel(one, other)


def _mean_kernel(one: Any, other: Any) -> Any:
    """``k(a, b) = sum of exp(-|a - b|^2 / (2 s))`` over the `WIDTHS`."""
    distances = (one[:, None] - other[None]).square().sum(2)  # exactly 0 between equal rows; no root, no kink
    return sum((distances / (-2 * width)).exp() for width in WIDTHS).mean()
