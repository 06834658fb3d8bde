"""FedAvgM: momentum on the server (Hsu, Qi and Brown, *Measuring the effects of non-identical data distribution for
federated visual classification*, arXiv:1909.06335, section 4.3)."""

from __future__ import annotations

from typing import Any, Literal

from fedsim.learning.rules.optimiser import Moments, Optimiser
from fedsim.settings import Probability

__all__ = ["Momentum"]


class Momentum(Optimiser):
    """Momentum on the server (FedAvgM): the model goes on where the mean changes of the rounds so far lead it."""

    name: Literal["momentum"] = "momentum"
    beta: Probability = 0.9
    """How much of the velocity is left in the next round; 0: the mean, `learning_rate` times as far."""

    @property
    def moments(self) -> tuple[str, ...]:
        """The velocity."""
        return ("velocity",)

    def moved(self, change: Any, before: Moments) -> dict[str, Any]:
        """``v = beta v + D``."""
        return {"velocity": change + self.beta * before["velocity"] if before else change.clone()}

    def step(self, change: Any, moments: Moments) -> Any:
        """``eta v``."""
        return self.learning_rate * moments["velocity"]
