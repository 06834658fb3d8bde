"""Which small changes are tried: mutmut's, without those that say little here, and three of our own.

Left out are strings and all that an error says, ``zip(strict=...)``, and arguments or values that become ``None`` or
are left out: strict types, and the first test that passes by, see nearly all of these. Added are what a search among
operators and numbers misses: a call or an assignment that is left out, and a plain condition that is turned round.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import libcst as cst
from mutmut.mutation import file_mutation, mutators

__all__ = ["choose"]

FOLDER = Path("mutants")
"""Where mutmut works, and keeps its results."""
LEFT_OUT = (
    mutators.operator_string,
    mutators.operator_assignment,
    mutators.operator_arg_removal,
    mutators.operator_dict_arguments,
)


def is_left_alone(node: cst.CSTNode) -> bool:
    """Whether nothing inside is changed: what an error says, and whether lengths are compared that are the same."""
    return isinstance(node, cst.Raise) or (
        isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "strict"
    )


def call_left_out(statement: cst.Expr) -> Iterator[cst.CSTNode]:
    """``things.append(thing)`` does not happen."""
    if isinstance(statement.value, cst.Call):
        yield cst.Pass()


def assignment_left_out(statement: cst.Assign) -> Iterator[cst.CSTNode]:
    """``self.state = state`` does not happen; a plain name would be missed at once."""
    if all(isinstance(target.target, cst.Attribute | cst.Subscript) for target in statement.targets):
        yield cst.Pass()


def turned_round(branch: cst.If | cst.While) -> Iterator[cst.CSTNode]:
    """``if things:`` becomes ``if not things:``; comparisons and what is joined are changed already."""
    test = branch.test
    joined = isinstance(test, cst.Comparison | cst.BooleanOperation)
    if not joined and not (isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not)):
        alone = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield branch.with_changes(test=cst.UnaryOperation(cst.Not(), alone))


OWN: tuple[tuple[Any, Any], ...] = (
    (cst.Expr, call_left_out),
    (cst.Assign, assignment_left_out),
    (cst.If, turned_round),
    (cst.While, turned_round),
)


def choose() -> None:
    """Let mutmut make these changes in this process, and in those that it forks."""
    kept = [(kind, change) for kind, change in mutators.mutation_operators if change not in LEFT_OUT]
    made_by: Any = mutators  # its list of operators has the type of one that nobody changes
    made_by.mutation_operators[:] = [*kept, *OWN]
    visitor: Any = file_mutation.MutationVisitor
    skips = visitor._skip_node_and_children
    visitor._skip_node_and_children = lambda self, node: is_left_alone(node) or skips(self, node)
    begin_anew_if_others_are_made()


def begin_anew_if_others_are_made() -> None:
    """Mutants are numbered: after a change of what makes them, no result is that of the mutant with its name."""
    stamp = FOLDER / "made_by.txt"
    now = f"{metadata.version('mutmut')}\n{Path(__file__).read_text('utf-8')}"
    if not stamp.exists() or stamp.read_text("utf-8") != now:
        shutil.rmtree(FOLDER / "fedsim", ignore_errors=True)
        FOLDER.mkdir(exist_ok=True)
        stamp.write_text(now, "utf-8")
