"""Imports never go in a circle, wherever they stand: at the top, for types only, or in a function."""

from __future__ import annotations

import grimp
import networkx as nx
import pytest


@pytest.fixture(scope="module")
def imports() -> set[tuple[str, str]]:
    graph = grimp.build_graph("fedsim", cache_dir=None)
    return {(module, other) for module in graph.modules for other in graph.find_modules_directly_imported_by(module)}


def circles(imports: set[tuple[str, str]]) -> list[list[str]]:
    components = nx.strongly_connected_components(nx.DiGraph(imports))
    return sorted(sorted(component) for component in components if len(component) > 1)


def packages(imports: set[tuple[str, str]]) -> set[str]:
    modules = {module for edge in imports for module in edge}
    return {module.rpartition(".")[0] for module in modules if "." in module}


def between_neighbours(imports: set[tuple[str, str]], package: str) -> set[tuple[str, str]]:
    """Which module or subpackage of *package* imports which other one, each with all that is in it."""
    inside = [edge for edge in imports if all(module.startswith(f"{package}.") for module in edge)]
    depth = package.count(".") + 2
    short = {tuple(".".join(module.split(".")[:depth]) for module in edge) for edge in inside}
    return {(one, other) for one, other in short if one != other}


def test_a_circle_is_seen() -> None:
    edges = {("p.a.x", "p.b.y"), ("p.b.z", "p.a.w"), ("p.b.y", "p.b.v")}
    assert circles(edges) == []
    assert circles(between_neighbours(edges, "p")) == [["p.a", "p.b"]]
    assert circles({*edges, ("p.b.v", "p.a.x")}) == [["p.a.x", "p.b.v", "p.b.y"]]


def test_no_modules_import_each_other(imports: set[tuple[str, str]]) -> None:
    assert len(imports) > 1000
    assert circles(imports) == []


def test_no_neighbours_import_each_other(imports: set[tuple[str, str]]) -> None:
    """So a package can be read from the bottom up; what lies in a package may use what lies beside the package."""
    found = {package: circles(between_neighbours(imports, package)) for package in packages(imports)}
    assert {package: circle for package, circle in found.items() if circle} == {}
