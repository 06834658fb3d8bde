"""The table of planted faults: each has its one place in the source, and tests that exist. `make mutants` tries all."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest
from mutants.faults import FAULTS

ROOT = Path(__file__).parents[2]


@functools.cache
def sound_program(path: str) -> str:
    return ast.dump(ast.parse((ROOT / path).read_text("utf-8")))


def test_every_planted_fault_has_its_one_place() -> None:
    for fault in FAULTS:
        assert fault.planted_in((ROOT / fault.path).read_text("utf-8")), fault.name


@pytest.mark.long
def test_every_planted_fault_makes_another_program() -> None:
    for fault in FAULTS:
        planted = fault.planted_in((ROOT / fault.path).read_text("utf-8"))
        assert ast.dump(ast.parse(planted)) != sound_program(fault.path), fault.name


def test_every_planted_fault_names_tests_that_exist() -> None:
    for fault in FAULTS:
        assert fault.tests, fault.name
        for test in fault.tests:
            path, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text("utf-8"), (fault.name, test)


def test_no_two_planted_faults_have_one_name() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
