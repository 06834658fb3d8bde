"""The command that runs one candidate again, as a line for a shell."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedsim.experiment.host import HostOptions
from fedsim.scenario.yaml_reader import YamlError, parse_value

__all__ = ["command_for", "spelt"]


_OPTIONS = ("executor", "torch_device", "precision")
"""Those that may change a bit of a result, so that nothing in the store would be found without them."""


def command_for(
    protocol: str,
    path: Path,
    settings: Sequence[str],
    seeds: Sequence[int],
    *,
    options: HostOptions,
    store: Path,
    out: Path,
) -> str:
    """``fedsim run`` of a *protocol* with the *settings* on all *seeds*, from a *store* into the folder *out*."""
    words = ["fedsim", "run", str(path)]
    for setting in settings:
        words += ["--set", setting]
    words += [f"--only={protocol}", "--seeds", ",".join(map(str, seeds))]
    for option in _OPTIONS:
        if (value := getattr(options, option)) != getattr(HostOptions(), option):
            words += [f"--{option.replace('_', '-')}", value]
    return shlex.join([*words, "--store", str(store), "--out", str(out)])


def spelt(value: object) -> str:
    """A value in one line of YAML, in full.

    >>> spelt({"name": "lte", "rates": [1e-5, float("inf"), None], "on": "yes: no"}), spelt("lte_m_m1"), spelt("12")
    ('{"name": "lte", "rates": [1e-05, .inf, null], "on": "yes: no"}', 'lte_m_m1', '"12"')
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {_inside(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, str) and _is_plain(value):
        return value
    return _inside(value)


def _inside(value: object) -> str:
    if isinstance(value, Mapping):
        return spelt(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inside, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return json.dumps(value)


def _is_plain(text: str) -> bool:
    """Whether it is the same text without quotes."""
    try:
        return parse_value(text)[0] == text
    except YamlError:
        return False
