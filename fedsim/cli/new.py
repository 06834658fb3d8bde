"""``fedsim new``: a commented scenario to start from."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from importlib import resources
from pathlib import Path

from fedsim.cli.arguments import Commands
from fedsim.errors import UserError

__all__ = ["add_to", "starter"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "new",
        help="Write a commented scenario to start from.",
        description="Write a commented scenario that is valid and runs in seconds. An existing file stays as it is.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "name", metavar="NAME", type=Path, help="The scenario's name, or its file: plant or plant.yaml."
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.files import shown, why_no_folder, write_atomically
    from fedsim.scenario.scalars import printable
    from fedsim.scenario.scenario_name import check_name

    given: Path = arguments.name
    name = re.sub(r"\.ya?ml$", "", given.name, flags=re.IGNORECASE)
    path = given if name != given.name or not name else given.with_name(f"{name}.yaml")
    try:
        check_name(name)
    except ValueError as error:
        raise UserError(f"the name {error}") from None
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {shown(path.parent)} to put {path.name} into; make it first")
    if problem := why_no_folder(path.parent):
        raise UserError(f"{problem}; choose another folder")
    if os.path.lexists(path):
        raise UserError(f"{shown(path)} is there already, and stays as it is; choose another name")
    write_atomically(path, starter(str(path), name).encode())
    sys.stdout.write(
        f"{printable(str(path))}\nLook at it, then: {printable(shlex.join(['fedsim', 'run', str(path)]))}\n"
    )
    return 0


def starter(file: str, name: str) -> str:
    """The text of a scenario called *name*, which says of itself that it stands in *file*.

    >>> starter("halls/north.yaml", "north").splitlines()[2]
    '#   fedsim validate halls/north.yaml      # is everything right?'
    """
    from fedsim.scenario.yaml_writer import yaml_text

    text = resources.files("fedsim.cli").joinpath("starter.yaml").read_text(encoding="utf-8")
    own = {
        "# plant:": f"# {name}:",
        "name: plant": yaml_text({"name": name}).rstrip(),  # in quotes where it is 123 or null
        "plant.yaml": shlex.join([file]),
        "runs/plant": f"runs/{name}",
    }
    return re.sub("|".join(own), lambda found: own[found[0]], text)
