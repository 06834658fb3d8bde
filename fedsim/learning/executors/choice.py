"""Which executor trains, when nobody says: a matter of the model and the torch device, so of the scenario's numbers.

Left out on purpose: cores, memory, and what is installed. They differ from machine to machine, and a numeric family
must not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fedsim.models.table import ModelTable

__all__ = ["AUTO", "PRECISIONS", "TORCH_DEVICES", "ByProtocol", "Choice", "choose"]

AUTO = "auto"
"""The name that leaves the choice to `choose`."""
TORCH_DEVICES = ("cpu", "cuda")
"""Where torch can compute; the first one is the default."""
PRECISIONS = ("float32", "float64", "bfloat16", "tf32")
"""In what the executors compute, not each of them in all, ``tf32`` on ``cuda`` alone; the first one is the default."""


class ByProtocol(NamedTuple):
    """What a protocol trains."""

    models: tuple[ModelTable, ...]
    trains_alone: bool
    """Whether its objective needs the plain loop."""


class Choice(NamedTuple):
    """An executor, and why."""

    name: str
    """As it is registered."""
    reason: str
    """Why this one: a clause that goes on after "as"."""
    remark: str | None = None
    """What whoever asked may not expect of it: a sentence; None when there is nothing of the kind."""


def choose(
    asked: str, tables: Sequence[ModelTable], torch_device: str, protocols: Mapping[str, ByProtocol] | None = None
) -> Choice:
    """The executor that is *asked* for; for ``auto``, by these rules, the first one that fits:

    1. on torch device ``cuda``: ``batched``, the only one that computes there;
    2. for models of which ``batched`` knows the arithmetic of every layer: ``batched``;
    3. for all others: the plain loop, in ``processes``.

    *protocols*, by title, may train other models, or look at batches: of these only the remark tells.
    """
    if asked not in (AUTO, "batched"):
        return Choice(asked, "it was asked for")
    from fedsim.learning.executors.batched.support import why_not

    lack = next((lack for table in tables if (lack := why_not(table))), None)
    remark = lack and f"batched cannot take the model ({lack}), so every client is trained in the plain loop"
    remark = remark or _in_the_plain_loop(protocols or {})
    if asked != AUTO:
        return Choice(asked, "it was asked for", remark)
    if torch_device == "cuda":
        return Choice("batched", "it is the one that computes on cuda", remark)
    if lack is None:
        return Choice("batched", "it has the arithmetic of every layer of the model", remark)
    return Choice("processes", f"batched cannot take the model: {lack}")


def _in_the_plain_loop(protocols: Mapping[str, ByProtocol]) -> str | None:
    """Whose clients batched trains there, and why; None where there are none."""
    from fedsim.learning.executors.batched.support import why_not

    whose: dict[tuple[str, str], list[str]] = {}
    for title, of_it in protocols.items():
        lack = next((lack for table in of_it.models if (lack := why_not(table))), None)
        if lack is not None:
            whose.setdefault(("batched cannot take ", f" model: {lack}"), []).append(title)
        elif of_it.trains_alone:
            whose.setdefault(("", " objective looks at what models make of mini-batches, or moves weights"), []).append(
                title
            )
    told = "; ".join(
        f"{', '.join(titles)} ({before}{'its' if len(titles) == 1 else 'their'}{after})"
        for (before, after), titles in whose.items()
    )
    return f"batched trains in the plain loop, client by client: {told}" if told else None
