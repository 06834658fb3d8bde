"""Faults in what is refused where an answer is wanted in seconds, and in what is made only when somebody looks."""

from __future__ import annotations

from mutants.fault import Fault

QUICK = "fedsim/quick.py"
CACHE = "fedsim/data/cache.py"
NPZ = "fedsim/data/reading/npz.py"
DATASET = "fedsim/data/dataset.py"
GENERATED = "fedsim/data/generated.py"
TEST_ANSWERS_IN_SECONDS = "tests/data/test_answers_in_seconds.py"

FAULTS = (
    Fault(
        "runs are refused too",
        QUICK,
        "if _in_seconds.get() and number > most:",
        "if number > most:",
        (f"{TEST_ANSWERS_IN_SECONDS}::test_a_reader_is_told_off_only_where_an_answer_is_wanted_in_seconds",),
    ),
    Fault(
        "all data are refused too",
        QUICK,
        "_in_seconds.set(answer)",
        "_in_seconds.set(True)",
        (f"{TEST_ANSWERS_IN_SECONDS}::test_a_reader_is_told_off_only_where_an_answer_is_wanted_in_seconds",),
    ),
    Fault(
        "arrays are read before their size is looked at",
        NPZ,
        "check_bytes(size, shown(path))",
        "check_bytes(0, shown(path))",
        (f"{TEST_ANSWERS_IN_SECONDS}::test_arrays_are_refused_by_what_they_declare",),
    ),
    Fault(
        "the cache is read whatever its size",
        CACHE,
        "check_bytes(_bytes(place)",
        "check_bytes(0 * _bytes(place)",
        (f"{TEST_ANSWERS_IN_SECONDS}::test_what_the_cache_keeps_is_refused_before_it_is_read",),
    ),
    Fault(
        "a camera's images are those before them",
        GENERATED,
        "ids[own] - self.begin[number]",
        "ids[own] - self.begin[number] - 1",
        (f"{TEST_ANSWERS_IN_SECONDS}::test_some_samples_are_drawn_alone_and_are_the_same",),
    ),
    Fault(
        "all cameras are drawn for some of their images",
        DATASET,
        'if isinstance(self.stored, Later) and "x" not in vars(self):',
        "if self.x is None:",
        (f"{TEST_ANSWERS_IN_SECONDS}::test_some_samples_are_drawn_alone_and_are_the_same",),
    ),
)
