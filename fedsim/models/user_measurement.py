"""What a user's PyTorch module is measured on: two samples of zeros, with all that training does to it.

What training would trip over later is refused here: what cannot be averaged, sent or counted, and what does not start
the same twice. Left out: what changes in a module beside its parameters and buffers, such as counters of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fedsim.errors import Misfit, nearest
from fedsim.imports import load_function
from fedsim.models.user_head import find_head
from fedsim.models.user_table import Recipe, State, UserTable
from fedsim.models.user_torch import WHAT, kind_of, made, states_of, told

__all__ = ["measured"]

BATCH = 2
"""Samples that the module is measured on: batch normalisation needs more than one."""
TRACKED = "num_batches_tracked"
"""The whole number that batch normalisation counts and, with a momentum, never reads."""


def measured(recipe: Recipe) -> UserTable:
    """The table of the module that *recipe* makes.

    Raises `UserError` when it cannot be made or called, and when it cannot be trained, sent or averaged.
    """
    make, sha256 = load_function(recipe.path, what=WHAT)
    return _measured(recipe, make, sha256)


@lru_cache(maxsize=8)
def _measured(recipe: Recipe, make: Callable[..., Any], sha256: str) -> UserTable:
    module = made(recipe, make, seed=0)
    _check_tensors(module)
    _check_its_start(module, made(recipe, make, seed=0))
    states = tuple(_parted(module, recipe))
    outputs, flops = _called(module, recipe, states)
    return UserTable(
        recipe=recipe,
        source_sha256=sha256,
        states=states,
        outputs=outputs,
        forward_flops=flops / BATCH,
        head=find_head(module, recipe, states),
    )


# -- what it consists of ----------------------------------------------------------------------------------------------


def _check_tensors(module: nn.Module) -> None:
    """Everything that travels is made already, is float32, stands in one place, and all parameters are trained."""
    places: dict[int, str] = {}
    every = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    states = dict(states_of(module))
    if tied := [name for name in every if name not in states]:
        raise Misfit(
            f"{tied[0]!r} is the same parameter as another one, and each must stand in one place to be sent and "
            "averaged; give it a copy of its own",
            "path",
        )
    for name, value in states.items():
        if nn.parameter.is_lazy(value):
            raise Misfit(
                f"{name!r} has no shape before the first sample (a lazy module), and sizes must be known; use the "
                "module that is told its shapes, such as Linear for LazyLinear",
                "path",
            )
        if value.dtype != torch.float32:
            raise Misfit(f"{name!r} is {_dtype(value)}, and {_rule_of(name, value)}", "path")
        if isinstance(value, nn.Parameter) and not value.requires_grad:
            raise Misfit(
                f"parameter {name!r} is frozen (requires_grad is false), and all parameters are trained; register what "
                "stays as it is as a buffer with persistent=False, which is not sent either",
                "path",
            )
        if value.numel() and (other := places.setdefault(value.untyped_storage().data_ptr(), name)) != name:
            problem = f"{name!r} shares its memory with {other!r}, and each must have its own to be sent and averaged"
            raise Misfit(f"{problem}; clone one of them", "path")
    if not every:
        raise Misfit("the module has no parameters, so there is nothing to train; register some", "path")


def _rule_of(name: str, value: torch.Tensor) -> str:
    if isinstance(value, nn.Parameter):
        return "parameters must be float32; leave out .half(), .double() and dtype="
    if name.endswith(TRACKED):
        return "the mean of whole numbers is none; give the batch normalisation a momentum, which is then not needed"
    return (
        "what is sent and averaged must be float32; register a constant with persistent=False, which is not sent, or "
        "make it float32"
    )


def _check_its_start(one: nn.Module, other: nn.Module) -> None:
    """With equal seeds it is the same, so that a run can be repeated."""
    again = dict(states_of(other))
    for name, value in states_of(one):
        if name not in again or not torch.equal(torch.nan_to_num(value), torch.nan_to_num(again[name])):
            raise Misfit(
                f"{name!r} does not start alike when the module is made twice with the same torch.manual_seed; draw "
                "its numbers with torch, not with numpy or random",
                "path",
            )


def _parted(module: nn.Module, recipe: Recipe) -> Iterator[State]:
    classifier = recipe.classifier or _last_child(module)
    states = dict(states_of(module))
    for prefix in classifier:
        if not any(isinstance(value, nn.Parameter) and _within(name, prefix) for name, value in states.items()):
            known = [name for name, _ in module.named_modules() if name] + list(states)
            raise Misfit(
                f"{prefix!r} is no module with parameters and no parameter{nearest(prefix, known)} (the module's "
                f"children: {', '.join(name for name, _ in module.named_children()) or 'none'})",
                "classifier",
            )
    chosen = {name for name in states if any(_within(name, prefix) for prefix in classifier)}
    if not any(isinstance(value, nn.Parameter) for name, value in states.items() if name not in chosen):
        chosen = set(states)  # no extractor is left that could be trained
    for name, value in states.items():
        part = "classifier" if name in chosen else "extractor"
        yield State(name, part, tuple(value.shape), trained=isinstance(value, nn.Parameter))  # type: ignore[arg-type]


def _last_child(module: nn.Module) -> tuple[str, ...]:
    """The last direct child with parameters, by its name; the empty name, the whole, where there is none."""
    children = [name for name, child in module.named_children() if any(True for _ in child.parameters())]
    return tuple(children[-1:]) or ("",)


def _within(name: str, prefix: str) -> bool:
    return prefix in ("", name) or name.startswith(f"{prefix}.")


# -- what it does -----------------------------------------------------------------------------------------------------


def _called(module: nn.Module, recipe: Recipe, states: tuple[State, ...]) -> tuple[int, float]:
    """Its outputs, and the FLOPs of one forward pass of the batch, after all that training does to it."""
    constants = {name: value.clone() for name, value in module.named_buffers() if name not in dict(states_of(module))}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        with _all_products_counted() as counter:
            scores = _scores(module, recipe, BATCH)
        outputs, known = scores.shape[1], {state.name for state in states}
        if new := [name for name, _ in states_of(module) if name not in known]:
            raise Misfit(f"{new[0]!r} is made by the first forward pass; make it in the constructor", "path")
        with told(recipe, "its backward pass fails", "path"):
            if not scores.requires_grad:
                raise Misfit("the scores do not depend on any parameter; leave out detach() and no_grad()", "path")
            scores.sum().backward()  # type: ignore[no-untyped-call]
        for name, parameter in module.named_parameters():
            if parameter.grad is None:
                raise Misfit(
                    f"parameter {name!r} has no part in the scores, so it would be sent but never trained; omit it",
                    "path",
                )
        module.eval()
        with torch.no_grad():
            for batch in (BATCH, 1):
                if _scores(module, recipe, batch).shape[1] != outputs:
                    raise Misfit(f"it gives {outputs} scores in training and others in tests (eval())", "path")
    buffers = dict(module.named_buffers())
    for name, value in constants.items():
        if not torch.equal(value, buffers[name]):
            raise Misfit(
                f"buffer {name!r} is changed by a forward pass and is not persistent, so one device's numbers would "
                "come to the next; register it with persistent=True (and as float32)",
                "path",
            )
    return outputs, float(counter.get_total_flops())


def _scores(module: nn.Module, recipe: Recipe, batch: int) -> torch.Tensor:
    shape = (batch, *recipe.input_shape)
    samples = torch.zeros(shape, dtype=torch.float32 if recipe.tokens is None else torch.int64)
    try:
        scores = module(samples)
    except (Exception, SystemExit):
        with told(recipe, f"its forward pass fails on samples of shape {shape}{_channels(module, samples)}", "path"):
            raise
    if not isinstance(scores, torch.Tensor):
        raise Misfit(f"its forward pass must return one tensor of scores, and it returns {kind_of(scores)}", "path")
    needed = f"({batch}, {recipe.outputs})"
    found = tuple(scores.shape)
    if len(found) != 2 or found[0] != batch or found[1] < recipe.outputs or (recipe.outputs == 1 and found[1] != 1):
        wanted = "one number each" if recipe.outputs == 1 else f"a score for each of {recipe.outputs} classes"
        raise Misfit(
            f"its forward pass makes the shape {found} of {batch} sample{'s' if batch > 1 else ''}, and {needed} is "
            f"needed: {wanted}",
            "path",
        )
    if scores.dtype != torch.float32:
        raise Misfit(f"its forward pass returns {_dtype(scores)}, and float32 is needed", "path")
    return scores


def _channels(module: nn.Module, samples: torch.Tensor) -> str:
    """The way out for a batch of *samples* that *module* takes with a channel axis before the others."""
    for taken, saved in ((samples[:, None], "x[:, None]"), (samples.movedim(-1, 1), "np.moveaxis(x, -1, 1)")):
        with suppress(Exception, SystemExit):
            module(taken)
            return f" (a batch of {len(samples)}), and takes {tuple(taken.shape)}: save {saved}, channels first"
    return f" (a batch of {len(samples)})"


@contextmanager
def _all_products_counted() -> Iterator[FlopCounterMode]:
    """PyTorch's own counter, with the fused kernels off that it knows nothing of (recurrent layers, attention)."""
    with warnings.catch_warnings(), ExitStack() as stack:
        warnings.filterwarnings("ignore", "TF32 acceleration", UserWarning)  # on switching something off
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield stack.enter_context(FlopCounterMode(display=False))


def _dtype(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
