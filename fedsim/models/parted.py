"""A torch module whose state is known part by part: what an executor loads, trains and sends.

Leaves out how a part is made; `fedsim.models.torch_module` builds one from a layer table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

import torch
from torch import nn

__all__ = ["PartedModule"]


class PartedModule(nn.Module):
    """A model whose parameters and running statistics are grouped into the parts of its table."""

    @abstractmethod
    def part_state(self, part: str) -> dict[str, torch.Tensor]:
        """The module's own parameters and buffers of *part* by name, live, in the order of the table's states.

        Writing into them (without gradients) changes the model; they are all floating-point numbers.
        """

    @property
    @abstractmethod
    def last(self) -> nn.Module:
        """What makes scores of the features that objectives look at: the last layer with parameters."""

    @abstractmethod
    def features(self, x: torch.Tensor) -> torch.Tensor:
        """What the extractor makes of a batch of samples: (batch, ...)."""

    @abstractmethod
    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """The scores, (batch, outputs), of a batch of features: ``classify(features(x))`` is ``forward(x)``."""

    def looked_into(
        self, x: torch.Tensor, forward: Callable[[torch.Tensor], torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What `last` takes, (batch, ...), and the scores, in one *forward* pass: the whole one, or `classify`."""
        taken: list[torch.Tensor] = []
        hook = self.last.register_forward_pre_hook(lambda _, given: taken.append(given[0].clone()))
        try:
            scores = forward(x)
        finally:
            hook.remove()
        return taken[-1], scores

    def tell_client(self, client: int | None) -> None:
        """Say whose samples come next; None: those of nobody known."""

    def part_parameters(self, part: str) -> dict[str, nn.Parameter]:
        """Those of `part_state` that are trained, in the same order."""
        return {name: value for name, value in self.part_state(part).items() if isinstance(value, nn.Parameter)}

    def load(self, part: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """Copy *tensors* into the state of *part*.

        Raises `ValueError` unless names and shapes are those of the state.
        """
        state = self.part_state(part)
        if state.keys() != tensors.keys() or any(value.shape != tensors[name].shape for name, value in state.items()):
            known, given = ({name: tuple(value.shape) for name, value in some.items()} for some in (state, tensors))
            raise ValueError(f"part {part!r} has the state {known}, not {given}")
        if state:
            with torch.no_grad():
                torch._foreach_copy_(list(state.values()), [tensors[name] for name in state])
