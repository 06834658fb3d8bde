"""Faults in what is told of a run's memory, in how workers hand models over, and in what a device class has reached."""

from __future__ import annotations

from mutants.fault import Fault

MEMORY = "fedsim/experiment/memory.py"
OF_TRAINING = "fedsim/experiment/training_memory.py"
CLASSES = "fedsim/experiment/compare_device_classes.py"
TEST_PEAK = "tests/experiment/test_memory_at_the_peak.py"
SUM = (f"{TEST_PEAK}::test_it_is_the_sum_of_its_parts",)
REFUSED = (f"{TEST_PEAK}::test_what_does_not_fit_is_refused_before_anything_is_written",)
BY_CLASS = ("tests/experiment/test_compare_device_classes.py",)

FAULTS = (
    Fault(
        "one worker's memory is told for all",
        MEMORY,
        "training=each * workers,",
        "training=each,",
        SUM,
    ),
    Fault(
        "models that are yet to be added up take no memory",
        MEMORY,
        "_sums(one.kinds) + waiting",
        "_sums(one.kinds)",
        SUM,
    ),
    Fault(
        "one partial sum is told for all",
        MEMORY,
        "len(_sizes(kind)) * kind.shared",
        "kind.shared",
        SUM,
    ),
    Fault(
        "what training takes is not held against the memory that is free",
        MEMORY,
        "max(kept.total if kept else 0.0, peak.learning if peak else 0.0)",
        "(kept.total if kept else 0.0)",
        REFUSED,
    ),
    Fault(
        "a module of the largest model is told for all",
        OF_TRAINING,
        "modules = sum((1 + roles) * table.bytes() for table in tables)",
        "modules = max((1 + roles) * table.bytes() for table in tables)",
        SUM,
    ),
    Fault(
        "checkpoints may take all the time",
        "fedsim/learning/forcing.py",
        "ended_s + max(self._interval_s, pause_s)",
        "ended_s + self._interval_s",
        ("tests/learning/test_forcing.py",),
    ),
    Fault(
        "what is in its block travels with the message too",
        "fedsim/learning/executors/handing_over.py",
        "return self._passed[number, name] or packed(value)",
        "return packed(value)",
        ("tests/learning/test_memory_of_workers.py",),
    ),
    Fault(
        "bytes of a class are those of all its devices",
        CLASSES,
        'table[name] / table["clients"]',
        "table[name]",
        BY_CLASS,
    ),
    Fault(
        "a budget does not cut a class off",
        CLASSES,
        'run[run["round"] <= ends[protocol, seed]]',
        "run",
        BY_CLASS,
    ),
)
