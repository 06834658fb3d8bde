"""What every layer of a group of clients can do: weights and biases, one of each for each client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch

from fedsim.learning.executors.batched.client_tensors import ClientTensors
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock, DenseBlock
from fedsim.learning.executors.trainer import TensorDict

__all__ = ["ClientWeights", "GroupLayer", "layer_tensors"]


class GroupLayer(ABC):
    """A layer with weights. Tensors come by kind, ``weight`` and ``bias``, in the shapes in which they are sent."""

    def __init__(self, recipe: Recipe, weight: torch.Tensor, bias: torch.Tensor | None, clients: int) -> None:
        self._recipe = recipe
        self._clients = clients
        self._base_weight, self._base_bias = weight, bias
        self.bias = None if bias is None else ClientTensors.copies(recipe, bias, clients)

    # -- what differs ------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def tensors(self) -> ClientTensors | None:
        """Each client's weights; None while they are kept in factors."""

    @abstractmethod
    def shown(self, held: torch.Tensor) -> torch.Tensor:
        """A view of weights, or of their gradient, in the shape in which they are sent."""

    @abstractmethod
    def _weighted_weight_change(self, weights: Sequence[float]) -> torch.Tensor:
        """``sum of weights[c] (W_c - base)``, in the shape in which it is sent."""

    # -- what is alike -----------------------------------------------------------------------------------------------

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which tensors it has."""
        return ("weight",) if self.bias is None else ("weight", "bias")

    def begin(self, client: int) -> None:
        """A new training of *client* begins."""
        for tensors in self._client_tensors().values():
            tensors.begin(client)

    def restart(self, client: int) -> None:
        """Give *client* the base again."""
        if self.tensors is not None:
            self.shown(self.tensors.value[client]).copy_(self._base_weight)
        if self.bias is not None:
            assert self._base_bias is not None
            self.bias.value[client].copy_(self._base_bias)

    def set_push(self, client: int, push: Mapping[str, torch.Tensor]) -> None:
        """What is added to each of *client*'s gradients from now on."""
        for kind, tensors in self._client_tensors().items():
            assert tensors.push is not None
            self._shown(kind, tensors.push[client]).copy_(push[kind])

    def state(self, client: int) -> dict[str, torch.Tensor]:
        """One client's weights, in new memory."""
        return {
            kind: tensor.clone(memory_format=torch.contiguous_format) for kind, tensor in self.views(client).items()
        }

    def views(self, client: int) -> dict[str, torch.Tensor]:
        """One client's weights, live."""
        return {kind: self._shown(kind, tensors.value[client]) for kind, tensors in self._client_tensors().items()}

    def look(self, client: int, kind: str) -> torch.Tensor:
        """One client's weights of that kind, perhaps live."""
        return self.views(client)[kind]

    def starts(self, client: int) -> dict[str, torch.Tensor]:
        """Where its training started, for objectives that ask for it."""
        return {
            kind: self._shown(kind, tensors.start[client])
            for kind, tensors in self._client_tensors().items()
            if tensors.start is not None
        }

    def gradients(self) -> dict[str, list[torch.Tensor]]:
        """The gradients held for an objective that adds its own term, live; one for each client that has a step."""
        return {
            kind: [self._shown(kind, gradient) for gradient in tensors.gradients()]
            for kind, tensors in self._client_tensors().items()
        }

    def release(self) -> None:
        """Step along the gradients held."""
        for tensors in self._client_tensors().values():
            tensors.release()

    def weighted_change(self, weights: Sequence[float]) -> dict[str, torch.Tensor]:
        """``sum of weights[c] (tensor_c - base)``."""
        change = {"weight": self._weighted_weight_change(weights)}
        if self.bias is not None and self._base_bias is not None:
            change["bias"] = self.bias.weighted_change(self._base_bias, weights)
        return change

    def _client_tensors(self) -> dict[str, ClientTensors]:
        found = {"weight": self.tensors, "bias": self.bias}
        return {kind: tensors for kind, tensors in found.items() if tensors is not None}

    def _shown(self, kind: str, held: torch.Tensor) -> torch.Tensor:
        return self.shown(held) if kind == "weight" else held


class ClientWeights(Mapping[str, torch.Tensor]):
    """One client's weights, by full name: live ones, or, from factors, new ones each time that somebody looks."""

    def __init__(self, layers: Iterable[tuple[str, str, GroupLayer]], client: int) -> None:
        """*layers* come with their parts and names."""
        self._client = client
        self._layers = {f"{part}.{name}.{kind}": (layer, kind) for part, name, layer in layers for kind in layer.kinds}

    def __getitem__(self, name: str) -> torch.Tensor:
        layer, kind = self._layers[name]
        return layer.look(self._client, kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)


def layer_tensors(
    model: Mapping[str, TensorDict], block: ConvolutionBlock | DenseBlock
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A layer's weight, and its bias if it has one."""
    tensors, name = model[block.part], block.layer.name
    return tensors[f"{name}.weight"], tensors.get(f"{name}.bias")
