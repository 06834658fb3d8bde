"""Adaptive optimisers on the server: Adagrad, Adam and Yogi (Reddi et al., *Adaptive federated optimization*, ICLR
2021, algorithm 2).

Left out: the bias correction of Adam, as in that algorithm; `bias_correction` turns it on.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

from fedsim.learning.rules.optimiser import Moments, Optimiser
from fedsim.models.table import BYTES_PER_PARAMETER, ModelTable
from fedsim.settings import NonNegative, Positive, Probability

__all__ = ["Adagrad", "Adam", "Yogi"]


class Adaptive(Optimiser):
    """``w = w + eta m / (sqrt(v) + tau)``: small steps where changes have been large."""

    learning_rate: Positive = 0.01
    """eta: the server's step size; for each model and data it wants to be searched for, with the clients' one."""
    beta1: Probability = 0.9
    """How much of the mean change so far is left in the next round."""
    tau: Positive = 1e-3
    """Adaptivity: the smaller, the more a step depends on the sizes of changes so far."""
    v0: NonNegative | None = None
    """v before the first round; null: tau squared, the least that the paper allows. Some implementations have 0."""

    @abstractmethod
    def second(self, squared: Any, before: Any) -> Any:
        """v from the *squared* change and the v *before*."""

    @property
    def moments(self) -> tuple[str, ...]:
        """The mean change and the mean square."""
        return ("first", "second")

    def moved(self, change: Any, before: Moments) -> dict[str, Any]:
        """``m = beta1 m + (1 - beta1) D``, and v."""
        first = (1 - self.beta1) * change
        start = self.tau**2 if self.v0 is None else self.v0
        v = before["second"] if before else change.new_full(change.shape, start)
        return {
            "first": first + self.beta1 * before["first"] if before else first,
            "second": self.second(change * change, v),
        }

    def step(self, change: Any, moments: Moments) -> Any:
        """``eta m / (sqrt(v) + tau)``."""
        return self.learning_rate * moments["first"] / (moments["second"].sqrt() + self.tau)


class Adagrad(Adaptive):
    """Adagrad on the server (FedAdagrad): steps shrink with the sum of all squared changes so far."""

    name: Literal["adagrad"] = "adagrad"
    beta1: Probability = 0.0
    """How much of the mean change so far is left in the next round; the paper's experiments have 0."""

    def second(self, squared: Any, before: Any) -> Any:
        """``v = v + D^2``."""
        return before + squared


class Decaying(Adaptive):
    """Of Adam and Yogi, which forget old squares."""

    beta2: Probability = 0.99
    """How much of v is left in the next round."""
    bias_correction: bool = False
    """Divide m by ``1 - beta1^t`` and v by ``1 - beta2^t`` in the t-th step of a part, as Adam without federation."""

    @property
    def moments(self) -> tuple[str, ...]:
        """With correction, the number of steps too."""
        return (*super().moments, "steps") if self.bias_correction else super().moments

    def kept_bytes(self, table: ModelTable) -> float:
        """Its two moments, of what is trained; the number of steps is nothing beside them."""
        return float(BYTES_PER_PARAMETER * table.parameters() * len(super().moments))

    def moved(self, change: Any, before: Moments) -> dict[str, Any]:
        """As all adaptive ones; the steps are counted where they are needed."""
        moments = super().moved(change, before)
        if self.bias_correction:
            moments["steps"] = before["steps"] + 1 if before else change.new_ones(())
        return moments

    def step(self, change: Any, moments: Moments) -> Any:
        """With correction, of the corrected moments."""
        if self.bias_correction:
            first, second = (
                moments[name] / (1 - beta ** moments["steps"])
                for name, beta in (("first", self.beta1), ("second", self.beta2))
            )
            moments = {"first": first, "second": second}
        return super().step(change, moments)


class Adam(Decaying):
    """Adam on the server (FedAdam): steps shrink with the mean of the last squared changes."""

    name: Literal["adam"] = "adam"

    def second(self, squared: Any, before: Any) -> Any:
        """``v = beta2 v + (1 - beta2) D^2``."""
        return self.beta2 * before + (1 - self.beta2) * squared


class Yogi(Decaying):
    """Yogi on the server (FedYogi): as Adam, but v moves by no more than the squared change."""

    name: Literal["yogi"] = "yogi"

    def second(self, squared: Any, before: Any) -> Any:
        """``v = v - (1 - beta2) D^2 sign(v - D^2)``."""
        return before - (1 - self.beta2) * squared * (before - squared).sign()
