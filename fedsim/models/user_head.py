"""Where a user's module can be cut in two: before the child module that is all of its classifier.

Found by watching a forward pass: it is called once, with one tensor whose first axis is the samples', and what it
returns is what the module returns. Left out: classifiers of several modules, and those that take more than one tensor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedsim.models.user_table import Head, Recipe, State

__all__ = ["Call", "calls_of", "find_head"]


class Call(NamedTuple):
    """A call of a child module: copies, for the module may overwrite either of them later in its forward pass."""

    taken: torch.Tensor
    made: torch.Tensor


def calls_of(module: nn.Module, child: str, x: torch.Tensor) -> list[Call]:
    """The calls of *child* with one tensor, in a forward pass of *module*."""
    calls: list[Call] = []
    given: list[torch.Tensor | None] = []  # a stack: a child may call itself

    def before(_: nn.Module, taken: tuple[Any, ...], named: dict[str, Any]) -> None:
        alone = len(taken) == 1 and not named and isinstance(taken[0], torch.Tensor)
        given.append(taken[0].clone() if alone else None)

    def after(_: nn.Module, taken: tuple[Any, ...], made: Any) -> None:
        tensor = given.pop()
        if tensor is not None and isinstance(made, torch.Tensor):
            calls.append(Call(tensor, made.clone()))

    watched = module.get_submodule(child)
    hooks = (watched.register_forward_pre_hook(before, with_kwargs=True), watched.register_forward_hook(after))
    try:
        module(x)
    finally:
        for hook in hooks:
            hook.remove()
    return calls


def find_head(module: nn.Module, recipe: Recipe, states: tuple[State, ...]) -> Head | None:
    """The child module that is the classifier; None when there is no such one.

    *module* is in evaluation mode.
    """
    own = {state.name for state in states if state.part == "classifier"}
    children = [name for name, _ in module.named_modules() if name and own == {each for each in _names(module, name)}]
    if not children or len(own) == len(states):
        return None
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        shape = (1, *recipe.input_shape)
        samples = torch.rand(shape) if recipe.tokens is None else torch.randint(recipe.tokens, shape)
        scores = module(samples)
        for child in children:  # the outermost first: it may hold a rectifier beside the layer with parameters
            calls = calls_of(module, child, samples)
            of_one_sample = len(calls) == 1 and calls[0].taken.shape[:1] == (1,)  # else rows would be no samples
            if of_one_sample and torch.equal(calls[0].made, scores):
                with FlopCounterMode(display=False) as counter:
                    module.get_submodule(child)(calls[0].taken)
                return Head(child, tuple(calls[0].taken.shape[1:]), float(counter.get_total_flops()))
    return None


def _names(module: nn.Module, child: str) -> list[str]:
    return [f"{child}.{name}" for name in module.get_submodule(child).state_dict()]
