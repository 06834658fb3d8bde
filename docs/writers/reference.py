"""The pages of docs/reference: keys of a scenario, components by kind, the command line."""

from __future__ import annotations

import argparse

from fedsim import cli, registry
from fedsim.settings import Settings
from writers.keys import key_table
from writers.layout import (
    INDEX,
    SCENARIO,
    Keys,
    components,
    keys_of_its_own,
    others_than,
    own_keys,
    page_of,
    places,
    scenario_sections,
    shared_keys,
    who,
)
from writers.markdown import anchor, in_words, one_line, relative, table, wrapped

NOTE = "<!-- Written by docs/generate.py (`make docs`); change the code's docstrings instead. -->\n"

WHAT = {
    "protocols": "Who talks when, what is sent, and what is computed from it.",
    "cohorts": "Which clients take part in a round; a part of a protocol.",
    "schedules": "Who waits for whom in a round; a part of a protocol.",
    "exchanges": "What goes down to the clients, what they do with it, and what comes up; a part of a protocol.",
    "objectives": "What a client minimises beside the loss on its samples; a part of a protocol.",
    "rules": "How updates become the next model; a part of a protocol.",
    "codecs": "How an update is written on the wire; a part of a protocol.",
    "selections": "Which filters of a trained extractor a client sends; a part of some protocols.",
    "topologies": "Who stands where and is linked to whom.",
    "radios": "The rates between sensors and their base station.",
    "snrs": "Where the signal-to-noise ratios of the radio `shannon` come from.",
    "path_losses": "How many decibels are lost over a distance.",
    "disciplines": "How those who send at the same time share a cell or a wire.",
    "computes": "How long local training takes on a simulated device.",
    "datasets": "The samples, or only their number and size.",
    "partitions": "How samples are spread over clients.",
    "feature_skews": "How what clients measure differs between them.",
    "drifts": "How what a device sees changes in the course of time.",
    "groupings": "Which clients form a group and train one after the other.",
    "growths": "How the number of groups grows from block to block.",
    "subsets": "Which devices train together in one step, so that their samples are together like all data.",
    "models": "What is trained, known by its parameters, bytes and FLOPs.",
    "executors": "How training is computed on this machine.",
    "cost_models": "Costs in closed form, as papers print them.",
    "paper_tables": "Published tables. A scenario names one in `paper_table`, and its results are printed beside it.",
    "exporters": "For which tools `fedsim export --to` writes the results of finished runs.",
}
"""Each kind of component in a sentence."""


def pages() -> dict[str, str]:
    """The whole reference: the content of each page, by its path."""
    written = {SCENARIO: scenario_page(), INDEX: index_page(), "docs/reference/cli.md": cli_page()}
    written |= {page_of(kind): kind_page(kind) for kind in registry.KINDS}
    return {path: wrapped(relative(text, path)) for path, text in written.items()}


def scenario_page() -> str:
    """The keys of a scenario, section by section."""
    text = (
        f"{NOTE}# Keys of a scenario\n\n"
        "What may stand under `topology`, `data`, `model`, `protocols` and wherever else a `name` chooses between "
        f"components is on [other pages](/{INDEX}); a `path` in place of the name chooses "
        "[a class of your own](/docs/add_a_protocol.md#5-from-outside-the-package). Unknown keys are errors. The end "
        "of a key's name is its unit: "
        "`_s` seconds, `_bytes` bytes, `_bps` bit/s, `_m` metres, `flops_per_s` operations per second. "
        "How to write one: [the guide](/docs/scenarios.md).\n"
    )
    for section, path in scenario_sections().items():
        title = f"`{path}`" if path else "The whole scenario"
        text += f"\n## {title}\n\n{section_text(section)}"
    return text


def index_page() -> str:
    """The kinds of components, each with its sentence and its names."""
    rows = [
        [
            f"[{kind}](/{page_of(kind)})",
            WHAT[kind],
            ", ".join(f"[{name}](/{page_of(kind)}#{anchor(name)})" for name in registry.names(kind)),
        ]
        for kind in registry.KINDS
    ]
    return (
        f"{NOTE}# Components\n\n"
        "A component is a thing with a name; `fedsim list` prints each with a sentence. A scenario chooses it by its "
        "`name`, and its other keys stand beside the name: `{name: fedprox, fraction: 0.25, mu: 0.1}`. Each kind of "
        f"component has a page with all keys.\n\n{table(['kind', 'what it is', 'names'], rows)}"
    )


def kind_page(kind: str) -> str:
    """All components of *kind*: first the keys that several take, then each with its sentence and its own keys."""
    shared = shared_keys(kind)
    here = ", ".join(f"[{name}](#{anchor(name)})" for name in registry.names(kind))
    text = f"{NOTE}# {kind}\n\n{WHAT[kind]} Here: {here}. Other kinds: [components](/{INDEX}).\n"
    if shared:
        text += "\nFirst come the keys that several of these share, then each component with its own keys.\n"
    if any(others_than(keys, kind, key) for keys in shared for key, _ in keys.rows):
        text += (
            "Where a key stands in several tables, the component's own table holds, or else the one that is shared by "
            "the fewest.\n"
        )
    for keys in shared:
        text += f"\n## {keys.title}\n\n{exceptions(keys, kind)}{key_table(keys.rows)}{inner_sections(keys, kind)}"
    for name in registry.names(kind):
        text += f"\n## `{name}`\n\n{registry.first_sentence(kind, name)}\n"
        if name in components(kind):
            keys = keys_of_its_own(kind, name)
            links = [f"[{who(kind, each.names)}](#{anchor(each.title)})" for each in shared if name in each.names]
            text += f"\nShared keys: those of {'; '.join(links)}.\n" if links else ""
            text += f"\n{key_table(keys.rows)}{inner_sections(keys, kind)}"
    return text


def exceptions(shared: Keys, kind: str) -> str:
    """Who takes *shared* keys, unless the title says it, and which of these differ for whom."""
    told = f"These are {in_words(shared.names)}.\n" if " to " in shared.title else ""
    for key, _ in shared.rows:
        if others := others_than(shared, kind, key):
            told += f"`{key}` differs for {in_words(others)}.\n"
    return f"{told}\n" if told else ""


def inner_sections(keys: Keys, kind: str) -> str:
    """The sections inside *keys* that stand here and nowhere else."""
    here = [(path, section) for path, section in keys.inner if places()[section] == f"/{page_of(kind)}#{anchor(path)}"]
    return "".join(f"\n### `{path}`\n\n{section_text(section)}" for path, section in here)


def section_text(section: type[Settings]) -> str:
    """The first paragraph of its docstring, and its keys."""
    first, *_ = (section.__doc__ or "").split("\n\n")
    return f"{one_line(first)}\n\n{key_table(all_keys(section))}"


def all_keys(section: type[Settings]) -> list[tuple[str, type[Settings]]]:
    """The keys of *section*, those that it does not inherit first."""
    own = own_keys(section)
    return [(key, section) for key in sorted(section.model_fields, key=lambda key: key not in own)]


def cli_page() -> str:
    """The commands and their options, from the parser itself."""
    _, commands = cli._parser()
    text = (
        f"{NOTE}# Command line\n\n"
        "Exit status: 0 done, 1 failed, 2 the input is wrong (one message says where, what, the rule and the way out), "
        "130 interrupted. Results go to standard output, progress and remarks to standard error. "
        "`python -m fedsim` is the same command.\n"
    )
    for name, parser in commands.items():
        actions = [action for action in parser._actions if action.dest != "help"]
        usage = " ".join(["fedsim", name, *map(usage_of, actions)])
        text += f"\n## `fedsim {name}`\n\n{parser.description}\n\n```text\n{usage}\n```\n".replace("%%", "%")
        if actions:
            rows = ([f"`{' '.join(spelling(action))}`", (action.help or "") % vars(action)] for action in actions)
            text += f"\n{table(['argument', 'meaning'], rows)}"
    return text


def usage_of(action: argparse.Action) -> str:
    words = " ".join(spelling(action))
    if not action.option_strings:
        return {"+": f"{words}...", "?": f"[{words}]"}.get(str(action.nargs), words)
    return f"[{words}]" + ("..." if isinstance(action, argparse._AppendAction) else "")


def spelling(action: argparse.Action) -> list[str]:
    """The option and what follows it."""
    words = list(action.option_strings[-1:])
    if action.nargs == 0:
        return words
    return [*words, "|".join(action.choices) if action.choices else str(action.metavar or action.dest)]
