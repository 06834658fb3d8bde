"""A user's PyTorch module: made, and held as the parts that an executor trains.

It is made for real on the CPU, not on torch's meta device, since many constructors and forward passes look at numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from fedsim.errors import Misfit, UserError
from fedsim.imports import load_function, reason
from fedsim.models.parted import PartedModule
from fedsim.models.table import ModelTable
from fedsim.models.user_head import calls_of
from fedsim.models.user_table import Recipe, UserTable

__all__ = ["WHAT", "UserModule", "build_user_module", "initial_user_state", "kind_of", "made", "states_of", "told"]

WHAT = "a class or function that makes a torch.nn.Module"
"""That a recipe's path must name."""
LARGEST_SEED = 2**63


class UserModule(PartedModule):
    """A user's module, whose parameters and buffers are grouped by their names."""

    def __init__(self, module: nn.Module, table: UserTable) -> None:
        super().__init__()
        self.user = module
        self._recipe = table.recipe
        self._parts = {state.name: state.part for state in table.states}
        self._head = table.head.name if table.head else ""

    def part_state(self, part: str) -> dict[str, torch.Tensor]:
        """The module's own parameters and buffers of *part* by name, live, in the order of the table's states."""
        return {name: value for name, value in states_of(self.user) if self._parts[name] == part}

    @property
    def last(self) -> nn.Module:
        """Its classifier."""
        return self.user.get_submodule(self._head)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """What its classifier is called with, for a batch of samples."""
        return calls_of(self.user, self._head, x)[0].taken

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """The scores of a batch of features."""
        scores: torch.Tensor = self.last(features)
        return scores

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores, (batch, outputs), of a batch of samples. Raises `UserError` when the user's code fails."""
        with told(
            self._recipe, f"the forward pass of {self._recipe.path!r} fails on samples of shape {tuple(x.shape)}"
        ):
            scores: torch.Tensor = self.user(x)
        return scores


def build_user_module(table: ModelTable) -> UserModule:
    """The module of *table*, float32 on the CPU, with all of its state zero.

    No random number is drawn. Raises `UserError` when its file has changed since it was measured.
    """
    module = _made_again(table, seed=0)
    with torch.no_grad():
        for part in table.parts:
            for value in module.part_state(part).values():
                value.zero_()
    return module


def initial_user_state(table: ModelTable, rng: np.random.Generator) -> dict[str, dict[str, torch.Tensor]]:
    """Part -> name -> float32 tensor to start training from: as the module's constructor draws it.

    Torch's own generator is seeded for it with one number of *rng*, and is as before afterwards. Raises `UserError` as
    `build_user_module` does.
    """
    module = _made_again(table, seed=int(rng.integers(LARGEST_SEED)))
    return {
        part: {name: value.detach().clone() for name, value in module.part_state(part).items()} for part in table.parts
    }


def _made_again(table: ModelTable, *, seed: int) -> UserModule:
    assert isinstance(table, UserTable), "the only other table that tensors are made of"
    make, sha256 = load_function(table.recipe.path, what=WHAT)
    if sha256 != table.source_sha256:
        raise UserError(f"{table.recipe.path.rpartition(':')[0]} has changed since this run began; run it again")
    return UserModule(made(table.recipe, make, seed=seed), table)


def made(recipe: Recipe, make: Callable[..., Any], *, seed: int) -> nn.Module:
    """What *make* makes of the recipe's options, ready for training; raises `UserError` where that is no module."""
    options = json.loads(recipe.options)
    with torch.random.fork_rng(devices=[]), told(recipe, "making it fails", "options" if options else "path"):
        torch.manual_seed(seed)
        module = make(**options)
    if not isinstance(module, nn.Module):
        is_class = isinstance(module, type) and issubclass(module, nn.Module)
        way_out = "; write its brackets, or name the class" if is_class else ""
        raise Misfit(
            f"{recipe.path!r} must make a torch.nn.Module, and what it returns is {kind_of(module)}{way_out}", "path"
        )
    for normalisation in module.modules():
        if isinstance(normalisation, _NormBase) and normalisation.momentum is not None:
            normalisation.num_batches_tracked = None  # a whole number, which no mean could average
    return module.train()


def states_of(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """All that travels: parameters and persistent buffers, by their full names."""
    for path, part in module.named_modules():
        ahead = f"{path}." if path else ""
        for name, parameter in part._parameters.items():
            if parameter is not None:
                yield f"{ahead}{name}", parameter
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in part._non_persistent_buffers_set:
                yield f"{ahead}{name}", buffer


@contextmanager
def told(recipe: Recipe, problem: str, *key: str) -> Iterator[None]:
    """What a user's code raises becomes one message with its line."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise Misfit(f"{problem}: {reason(error, _file(recipe))}", *key) from error


def _file(recipe: Recipe) -> str:
    where = recipe.path.rpartition(":")[0]
    return getattr(sys.modules.get(where), "__file__", None) or where


def kind_of(thing: object) -> str:
    """What *thing* is, for a message."""
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"of type {type(thing).__name__}"
