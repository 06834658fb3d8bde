"""Faults in what is said to somebody who has made a mistake, or may have."""

from __future__ import annotations

from mutants.fault import Fault

ERRORS = "fedsim/errors.py"
WORDING = "fedsim/scenario/wording.py"
UNKNOWN = "fedsim/cli/unknown.py"
BEFORE = "fedsim/experiment/remarks_on_air.py"
AFTER = "fedsim/experiment/remarks_after.py"
ON_CLASSES = "fedsim/experiment/remarks_on_classes.py"
TEST_ALIKE = "tests/scenario/test_alike.py"
TEST_WORDS = "tests/cli/test_wrong_words.py"
TEST_BEFORE = "tests/experiment/test_remarks_before.py"
TEST_ON_CLASSES = "tests/experiment/test_remarks_on_classes.py"
TEST_AFTER = "tests/experiment/test_remarks_after.py"

FAULTS = (
    Fault(
        "a name that is far off is proposed",
        ERRORS,
        "return differing <= max(2, len(word) // 3)",
        "return True",
        (TEST_ALIKE,),
    ),
    Fault(
        "words that mean something elsewhere are only spelled",
        "fedsim/registry.py",
        "    if known is None:",
        "    if True:",
        (TEST_ALIKE,),
    ),
    Fault(
        "a share in percent gets no hand",
        WORDING,
        "2 < value <= 100",
        "100 < value <= 100",
        ("tests/cli/test_wrong_scenarios.py",),
    ),
    Fault(
        "an option is proposed to a command that lacks it",
        UNKNOWN,
        'known.write.partition(" ")[0] in options or',
        "True or",
        (TEST_WORDS,),
    ),
    Fault(
        "what a technology has is too slow",
        BEFORE,
        "    if rate_bps >= slowest_bps:",
        "    if rate_bps > slowest_bps:",
        (TEST_BEFORE,),
    ),
    Fault(
        "a model takes an eighth of its time",
        BEFORE,
        "duration(bits(model.bytes()) / rate_bps)",
        "duration(model.bytes() / rate_bps)",
        (TEST_BEFORE,),
    ),
    Fault(
        "half of the clients with few classes are not enough for a remark",
        ON_CLASSES,
        "if 2 * few_of_them >= all_of_them > 0:",
        "if 2 * few_of_them > all_of_them > 0:",
        (f"{TEST_ON_CLASSES}::test_batch_normalisation_of_few_classes_at_half_of_the_clients_is_named",),
    ),
    Fault(
        "two classes are many",
        ON_CLASSES,
        "if classes <= FEW)",
        "if classes < FEW)",
        (f"{TEST_ON_CLASSES}::test_batch_normalisation_of_few_classes_at_half_of_the_clients_is_named",),
    ),
    Fault(
        "all clients are counted for the model of one device class",
        ON_CLASSES,
        "(sum(number[name] for name in names) for number in (clients, few))",
        "(sum(number.values()) for number in (clients, few))",
        (f"{TEST_ON_CLASSES}::test_each_model_is_looked_at_with_the_clients_that_train_it",),
    ),
    Fault(
        "only the first clients' classes are counted",
        "fedsim/data/class_counts.py",
        "for begin in range(0, data.clients, rows)",
        "for begin in range(0, data.clients, data.clients)",
        ("tests/data/test_federated_dataset.py::test_classes_of_clients_are_counted_some_clients_at_once",),
    ),
    Fault(
        "the server's own learning rate goes unnamed",
        "fedsim/protocols/combination.py",
        'if "learning_rate" in type(self.server).model_fields',
        "if False",
        ("tests/protocols/test_stops.py",),
    ),
    Fault(
        "losses that differ little look the same",
        AFTER,
        'if len(set(pair.split(" -> "))) == 2',
        "if pair",
        (TEST_AFTER,),
    ),
    Fault(
        "a model that is sure of its few errors counts as one that guesses",
        AFTER,
        "return loss > (2 if is_guess else 10)",
        "return loss > (2 if True else 10)",
        (TEST_AFTER,),
    ),
    Fault(
        "a component of a large document tells all of its mistakes",
        "fedsim/settings.py",
        "return replace(schema, stops_early=True)",
        "return schema",
        ("tests/scenario/test_checking.py",),
    ),
)
