"""What sources say of the attributes of their classes: the text that stands below each."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

__all__ = ["attribute_docstrings"]


@cache
def attribute_docstrings(module: str) -> dict[str, str]:
    """The texts below annotated attributes in *module*, which is loaded, by ``Class.attribute``, as a class is called.

    None where there is no source, as of what was typed in.
    """
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return dict(_in_classes(tree, ""))


def _in_classes(tree: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
    for inside in ast.iter_child_nodes(tree):
        if isinstance(inside, ast.ClassDef):
            yield from _below_attributes(inside.body, f"{prefix}{inside.name}.")
            yield from _in_classes(inside, f"{prefix}{inside.name}.")
        elif isinstance(inside, ast.FunctionDef):
            yield from _in_classes(inside, f"{prefix}{inside.name}.<locals>.")


def _below_attributes(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    for attribute, below in pairwise(body):
        match attribute, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield f"{prefix}{name}", inspect.cleandoc(text)
