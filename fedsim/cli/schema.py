"""``fedsim schema``: what a scenario may hold, for editors that complete and check while one types."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from fedsim.cli.arguments import Commands

__all__ = ["add_to", "scenario_schema"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "schema",
        help="Print the JSON Schema of scenarios, for editors.",
        description="Print the JSON Schema of scenarios. Editors with YAML support complete and check a scenario whose "
        "first line is: # yaml-language-server: $schema=FILE",
        allow_abbrev=False,
    )
    parser.set_defaults(execute=_execute)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a scenario file: of the settings, and of a topology given by its path."""
    from fedsim.scenario.schema import Scenario

    schema = Scenario.model_json_schema()
    inline = schema["properties"]["topology"]
    description = inline.pop("description")
    path = {"type": "string", "description": "A topology file (.yaml, .json, .graphml), relative to the scenario."}
    schema["properties"]["topology"] = {"description": description, "anyOf": [path, inline]}
    definitions = schema.pop("$defs")
    partial = _partial(schema)
    extends = "A scenario in the same folder; this one has all of its keys but those that it has itself."
    partial["properties"]["extends"] = {"type": "string", "description": extends}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fedsim scenario",
        "description": schema.pop("description"),
        "if": {"required": ["extends"]},
        "then": partial,
        "else": schema,
        "$defs": definitions | {f"{PARTIAL}{name}": _partial(inside) for name, inside in definitions.items()},
    }


PARTIAL = "Partial"


def _partial(schema: Any) -> Any:
    """The schema of what is laid over another scenario: the same keys, and none of them is required."""
    if isinstance(schema, list):
        return [_partial(inside) for inside in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _partial(inside) for key, inside in schema.items() if key not in ("required", "discriminator")}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = made["$ref"].replace("#/$defs/", f"#/$defs/{PARTIAL}")
    if "oneOf" in made:  # without a name, more than one may fit
        made["anyOf"] = made.pop("oneOf")
    return made


def _execute(arguments: argparse.Namespace) -> int:
    sys.stdout.write(json.dumps(scenario_schema(), indent=2) + "\n")
    return 0
