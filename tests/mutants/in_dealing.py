"""Faults in who holds which samples, what is set aside, how clients differ, and what fits together."""

from __future__ import annotations

from mutants.fault import Fault

FITTING = "fedsim/scenario/fitting.py"
PLACES = "fedsim/topology/places.py"
SHARES = "fedsim/data/shares.py"
SAMPLED = "fedsim/data/sampled.py"
NATURAL = "fedsim/data/partition/natural.py"
VALIDATION = "fedsim/data/validation.py"
DIRICHLET = "fedsim/data/partition/dirichlet.py"
PARTITION_SETTINGS = "fedsim/data/partition/settings.py"
CLASSES_PER_CLIENT = "fedsim/data/partition/classes_per_client.py"
FACTORY_PREFERENCE = "fedsim/data/partition/factory_preference.py"
GENERATED = "fedsim/data/generated.py"
FEATURE_SKEW_NOISE = "fedsim/data/feature_skew.py"
FEATURE_SKEW_SETTINGS = "fedsim/data/feature_skew.py"
DATASET = "fedsim/data/dataset.py"
TEST_VALIDATION = "tests/data/test_validation.py"
TEST_FITTING = "tests/scenario/test_fitting.py"
TEST_PLACES = "tests/topology/test_places.py"
TEST_DIGITS = "tests/data/test_digits.py"
TEST_FEMNIST = "tests/data/test_femnist.py"
TEST_DATA_CONFORMANCE = "tests/data/test_data_conformance.py"
TEST_PARTITION_THEORY = "tests/data/test_partition_theory.py"
TEST_GLYPHS = "tests/data/test_glyphs.py"
TEST_FEATURE_SKEWS = "tests/data/test_feature_skews.py"
TEST_FEDERATED_DATASET = "tests/data/test_federated_dataset.py"

FAULTS = (
    Fault(
        "a model must take more ids than there are",
        FITTING,
        "takes < gives",
        "takes <= gives",
        (f"{TEST_FITTING}::test_a_model_for_characters_takes_as_many_as_there_are",),
    ),
    Fault(
        "a model may take fewer ids than there are",
        FITTING,
        "(takes is None or takes < gives)",
        "takes is None",
        (f"{TEST_FITTING}::test_a_model_for_characters_takes_no_more_than_it_knows",),
    ),
    Fault(
        "models of characters take numbers",
        FITTING,
        "and dataset.stored is not None and dataset.vocabulary is None",
        "and dataset.stored is not None and dataset.vocabulary == 0",
        (f"{TEST_FITTING}::test_a_model_for_characters_does_not_take_numbers",),
    ),
    Fault(
        "series may be augmented as images",
        FITTING,
        "len(shape) != 3",
        "len(shape) < 2",
        (f"{TEST_FITTING}::test_series_and_characters_are_not_augmented",),
    ),
    Fault(
        "texts may be augmented",
        FITTING,
        "dataset.vocabulary is not None or shape is None or len(shape) != 3",
        "shape is None",
        (f"{TEST_FITTING}::test_series_and_characters_are_not_augmented",),
    ),
    Fault(
        "numbers drift between classes",
        FITTING,
        "if stream.drift is not None and dataset.classes is None",
        "if stream.drift is not None and dataset.classes == 0",
        (f"{TEST_FITTING}::test_what_has_no_classes_does_not_drift_between_them",),
    ),
    Fault(
        "unseen clients are the clients' own tests",
        FITTING,
        '"unseen": (dataset.unseen_test_ids,',
        '"unseen": (dataset.client_test_ids,',
        (f"{TEST_FITTING}::test_a_test_set_that_is_not_there_is_named_with_the_key_that_makes_it",),
    ),
    Fault(
        "an accuracy of numbers may be a protocol's target",
        FITTING,
        '        *(((*scenario.place_of(protocol), "stop"), protocol.stop) for protocol in scenario.protocols),\n',
        "",
        (f"{TEST_FITTING}::test_numbers_to_predict_have_no_target_accuracy",),
    ),
    Fault(
        "factories are numbered with gaps",
        PLACES,
        "numbers.setdefault(_factory(kinds, towards, cell, behind), len(numbers))",
        "numbers.setdefault(_factory(kinds, towards, cell, behind), len(of_cell))",
        (f"{TEST_PLACES}::test_a_factory_is_what_is_behind_one_edge_server",),
    ),
    Fault(
        "every cell is a factory of its own",
        PLACES,
        "return behind[cell] or cell",
        "return cell",
        (f"{TEST_PLACES}::test_a_factory_is_what_is_behind_one_edge_server",),
    ),
    Fault(
        "without edge servers all is one factory",
        PLACES,
        "return behind[cell] or cell",
        "return behind[cell] or topology.cloud",
        (f"{TEST_PLACES}::test_without_edge_servers_it_is_a_cell",),
    ),
    Fault(
        "always one sample more is held out",
        SHARES,
        "min(round(fraction * len(ids)), len(ids) - 1)",
        "min(round(fraction * len(ids)) + 1, len(ids) - 1)",
        (f"{TEST_DIGITS}::test_a_clients_own_tests_do_not_change_its_share",),
    ),
    Fault(
        "the first samples are held out",
        SHARES,
        "mixed = rng.permutation(ids)",
        "mixed = ids",
        (f"{TEST_DIGITS}::test_every_sample_is_set_aside_equally_often",),
    ),
    Fault(
        "a class may go without tests",
        SHARES,
        "max(round(fraction * len(members)), 1)",
        "round(fraction * len(members))",
        (f"{TEST_DIGITS}::test_no_class_goes_without_tests_or_training",),
    ),
    Fault(
        "labels are told by their place in the training samples",
        SAMPLED,
        "Labels(raw.y[training],",
        "Labels(raw.y[: len(training)],",
        (f"{TEST_DIGITS}::test_partitions_are_told_the_labels_of_the_samples_that_they_deal",),
    ),
    Fault(
        "unseen clients' tests are everybody's",
        SAMPLED,
        "own_tests[: clients.count]",
        "own_tests",
        (f"{TEST_FEMNIST}::test_unseen_writers_tests_are_nobody_elses_and_a_share_may_be_asked_for",),
    ),
    Fault(
        "unseen clients are tested on their tests only",
        SAMPLED,
        "_both(train[client], own_tests[client])",
        "own_tests[client]",
        (f"{TEST_DIGITS}::test_unseen_clients_hold_what_the_last_of_as_many_clients_would",),
    ),
    Fault(
        "a client's own tests have no feature skew",
        SAMPLED,
        "list(map(_both, train, own_tests))",
        "train",
        (f"{TEST_DATA_CONFORMANCE}::test_a_feature_skew_changes_what_clients_hold_and_nothing_else[noise]",),
    ),
    Fault(
        "windows that share measurements with what is set aside are trained on",
        VALIDATION,
        "(places >= first - overlap) & (places < first)",
        "(places > first - overlap) & (places < first)",
        (f"{TEST_VALIDATION}::test_no_measurement_is_trained_on_and_tested_on",),
    ),
    Fault(
        "the beginning of a record is set aside",
        VALIDATION,
        "first = places[-number]",
        "first = places[number]",
        (f"{TEST_VALIDATION}::test_of_each_record_the_end_of_what_is_trained_on_is_tested[natural]",),
    ),
    Fault(
        "records that are tests are set aside too",
        VALIDATION,
        "free = ~np.isin(records, tested)",
        "free = np.isin(records, records)",
        (f"{TEST_VALIDATION}::test_records_that_are_lives_are_set_aside_as_a_whole_and_some_of_each_fleet",),
    ),
    Fault(
        "records are set aside whatever their fleet",
        VALIDATION,
        "stratified_sample(fleet[free], fraction",
        "stratified_sample(0 * fleet[free], fraction",
        (f"{TEST_VALIDATION}::test_records_that_are_lives_are_set_aside_as_a_whole_and_some_of_each_fleet",),
    ),
    Fault(
        "unseen clients are tested while settings are chosen",
        SAMPLED,
        "clients.count if fraction else clients.total",
        "clients.total",
        (f"{TEST_VALIDATION}::test_a_share_of_what_each_client_would_train_on_is_tested_and_no_test_is_seen[iid]",),
    ),
    Fault(
        "what is drawn among overlapping windows is no remark",
        SAMPLED,
        "if raw.overlap and (keys",
        "if not raw.overlap and (keys",
        (f"{TEST_VALIDATION}::test_tests_that_are_drawn_among_overlapping_windows_are_remarked",),
    ),
    Fault(
        "own tests are drawn as the partition is",
        SAMPLED,
        'generator("data/client_test")',
        'generator("data/partition")',
        (f"{TEST_DATA_CONFORMANCE}::test_a_purpose_is_drawn_from_once[None-iid]",),
    ),
    Fault(
        "the source's tests count even if a share is asked for",
        SAMPLED,
        "if self.test_fraction is None and raw.test is not None:",
        "if raw.test is not None:",
        ("tests/data/test_arrays.py::test_tests_are_those_of_the_file",),
    ),
    Fault(
        "natural: the source's tests count even if a share is asked for",
        SAMPLED,
        "raw.test if self.test_fraction is None else None",
        "raw.test",
        (f"{TEST_FEMNIST}::test_unseen_writers_tests_are_nobody_elses_and_a_share_may_be_asked_for",),
    ),
    Fault(
        "who only tests is a client",
        SAMPLED,
        "np.flatnonzero(~trains[owner])",
        "np.flatnonzero(~trains[owner] & ~test)",
        ("tests/data/test_cmapss.py::test_every_engine_is_a_client_and_test_engines_are_nobodys",),
    ),
    Fault(
        "the share of tests is of samples and not of classes",
        SAMPLED,
        "raw.y if raw.classes is not None else np.zeros",
        "raw.y * 0 if raw.classes is not None else np.zeros",
        (f"{TEST_DIGITS}::test_the_test_set_holds_its_share_of_every_class",),
    ),
    Fault(
        "a client that is just full gets more",
        DIRICHLET,
        "held * clients < sizes.sum()",
        "held * clients <= sizes.sum()",
        (f"{TEST_PARTITION_THEORY}::test_extreme_concentration_still_covers",),
    ),
    Fault(
        "the capacity rule counts the class alone",
        DIRICHLET,
        "            held += shares\n",
        "            held = shares\n",
        (f"{TEST_PARTITION_THEORY}::test_a_full_client_gets_nothing_of_the_classes_that_follow",),
    ),
    Fault(
        "the capacity rule cannot be left out",
        DIRICHLET,
        "if self.capacity_rule else np.arange(clients)",
        "",
        (f"{TEST_PARTITION_THEORY}::test_dirichlet_shares_of_a_class_have_the_variance_of_the_law",),
    ),
    Fault(
        "rounding favours the last",
        PARTITION_SETTINGS,
        "* total + rng.random())",
        "* total)",
        (f"{TEST_PARTITION_THEORY}::test_rounding_favours_no_client",),
    ),
    Fault(
        "samples of a class are dealt in their order",
        PARTITION_SETTINGS,
        "rng.permutation(np.repeat(np.arange(counts.shape[1]), shares))",
        "np.repeat(np.arange(counts.shape[1]), shares)",
        (f"{TEST_DATA_CONFORMANCE}::test_samples_of_one_class_are_exchangeable[dirichlet]",),
    ),
    Fault(
        "the minimum must be exceeded",
        PARTITION_SETTINGS,
        ".min() >= minimum",
        ".min() > minimum",
        (f"{TEST_PARTITION_THEORY}::test_the_minimum_itself_is_enough",),
    ),
    Fault(
        "the minimum is that of the largest client",
        PARTITION_SETTINGS,
        "counts.sum(axis=0).min() >= minimum",
        "counts.sum(axis=0).max() >= minimum",
        (f"{TEST_PARTITION_THEORY}::test_the_minimum_itself_is_enough",),
    ),
    Fault(
        "clients meet the classes in their order",
        CLASSES_PER_CLIENT,
        "rank[rng.permutation(present)[met % present]",
        "rank[np.arange(present)[met % present]",
        (f"{TEST_PARTITION_THEORY}::test_chance_says_which_class_a_client_has",),
    ),
    Fault(
        "some class is left to nobody",
        CLASSES_PER_CLIENT,
        "met % clients] = -1.0",
        "met % clients] = 0.5",
        (f"{TEST_PARTITION_THEORY}::test_each_client_has_exactly_so_many_classes_and_each_class_is_shared_evenly",),
    ),
    Fault(
        "what is left over goes to the first clients",
        CLASSES_PER_CLIENT,
        "rng.permutation(np.flatnonzero(who))",
        "np.flatnonzero(who)",
        (f"{TEST_PARTITION_THEORY}::test_what_is_left_over_of_a_class_favours_no_client",),
    ),
    Fault(
        "factories prefer as if classes were equal",
        FACTORY_PREFERENCE,
        "* stock / len(y)",
        "/ len(stock) * np.ones(len(stock))",
        (f"{TEST_PARTITION_THEORY}::test_preferences_have_the_variance_of_the_law",),
    ),
    Fault(
        "every client has its factory's very preference",
        FACTORY_PREFERENCE,
        "_dirichlet(self.concentration * of_factory[each], rng) for",
        "of_factory[each] for",
        (f"{TEST_PARTITION_THEORY}::test_preferences_have_the_variance_of_the_law",),
    ),
    Fault(
        "all factories prefer the same",
        FACTORY_PREFERENCE,
        "self.concentration * of_factory[each]",
        "self.concentration * of_factory[0]",
        (f"{TEST_PARTITION_THEORY}::test_preferences_have_the_variance_of_the_law",),
    ),
    Fault(
        "the first come are served first",
        FACTORY_PREFERENCE,
        'rng.multivariate_hypergeometric(wishes[:, label], stock[label], method="marginals")',
        "np.diff(np.minimum(np.cumsum(wishes[:, label]), stock[label]), prepend=0)",
        (f"{TEST_PARTITION_THEORY}::test_preferences_have_the_variance_of_the_law",),
    ),
    Fault(
        "who prefers nothing that is left wishes evenly",
        FACTORY_PREFERENCE,
        "> 0, wanted, stock.astype(np.float64))",
        "> 0, wanted, (stock > 0).astype(np.float64))",
        (f"{TEST_PARTITION_THEORY}::test_who_prefers_nothing_that_is_left_wishes_in_proportion_to_what_is_left",),
    ),
    Fault(
        "unseen clients go before those of their factory",
        NATURAL,
        "client_of[np.sort(members[: len(taking_part)])] = taking_part",
        "client_of[np.sort(members[-len(taking_part) :])] = taking_part",
        (f"{TEST_PARTITION_THEORY}::test_the_factories_may_be_the_fleets_of_the_source",),
    ),
    Fault(
        "of equal owners the last goes first",
        NATURAL,
        'np.argsort(-sizes, kind="stable")',
        'len(sizes) - 1 - np.argsort(-sizes[::-1], kind="stable")',
        (f"{TEST_PARTITION_THEORY}::test_the_owners_with_most_samples_are_the_clients_in_the_order_of_the_source",),
    ),
    Fault(
        "shards are dealt in turn",
        "fedsim/data/partition/iid.py",
        "rng.permutation(np.arange(shards) % clients.total)",
        "np.arange(shards) % clients.total",
        (f"{TEST_PARTITION_THEORY}::test_shards_are_dealt_at_random",),
    ),
    Fault(
        "unseen clients are all in the first factory",
        "fedsim/data/raw_dataset.py",
        "% (int(self.factory.max()) + 1)",
        "% 1",
        (f"{TEST_PARTITION_THEORY}::test_unseen_clients_prefer_what_their_factory_prefers",),
    ),
    Fault(
        "all cameras print what the first factory prints",
        GENERATED,
        "factories[factory_of[number]]",
        "factories[factory_of[0]]",
        (f"{TEST_GLYPHS}::test_cameras_of_a_factory_prefer_what_it_prints",),
    ),
    Fault(
        "unseen cameras are those of clients",
        GENERATED,
        'f"unseen/{k}"',
        'f"device/{k}"',
        (f"{TEST_GLYPHS}::test_unseen_cameras_are_the_same_whoever_takes_part",),
    ),
    Fault(
        "the mean number of images is the median",
        GENERATED,
        " - spread**2 / 2",
        "",
        (f"{TEST_GLYPHS}::test_numbers_of_images_are_lognormal",),
    ),
    Fault(
        "the first client has no noise",
        FEATURE_SKEW_NOISE,
        "(number + 1) / numbers",
        "number / numbers",
        (f"{TEST_FEATURE_SKEWS}::test_client_i_of_n_has_i_nths_of_the_variance",),
    ),
    Fault(
        "the variance is the deviation",
        FEATURE_SKEW_NOISE,
        "np.sqrt(self.variance * (number + 1) / numbers)",
        "(self.variance * (number + 1) / numbers)",
        (f"{TEST_FEATURE_SKEWS}::test_client_i_of_n_has_i_nths_of_the_variance",),
    ),
    Fault(
        "noise is that of stored numbers",
        FEATURE_SKEW_NOISE,
        "/ numbers) / scale",
        "/ numbers)",
        (f"{TEST_FEATURE_SKEWS}::test_the_variance_is_that_of_decoded_samples_however_they_are_stored",),
    ),
    Fault(
        "images turn clockwise",
        "fedsim/data/feature_skew.py",
        "_taps(cosine * down + sine * right",
        "_taps(cosine * down - sine * right",
        (f"{TEST_FEATURE_SKEWS}::test_a_turn_is_that_of_scipy",),
    ),
    Fault(
        "whole numbers wrap around",
        FEATURE_SKEW_SETTINGS,
        "np.clip(np.rint(values), limits.min, limits.max)",
        "np.rint(values) % (limits.max + 1)",
        (f"{TEST_FEATURE_SKEWS}::test_the_variance_is_that_of_decoded_samples_however_they_are_stored",),
    ),
    Fault(
        "unseen clients measure as the first ones do",
        FEATURE_SKEW_SETTINGS,
        "unseen = (2 * np.arange(clients.unseen) + 1) * clients.count // (2 * max(clients.unseen, 1))",
        "unseen = np.arange(clients.unseen) % clients.count",
        (f"{TEST_FEATURE_SKEWS}::test_unseen_clients_are_as_noisy_as_those_who_take_part",),
    ),
    Fault(
        "the digest forgets who holds what",
        DATASET,
        "(data.client_samples, own_tests, unseen, ids, data.x, data.y)",
        "(data.client_samples, own_tests, unseen, data.x, data.y)",
        (f"{TEST_FEDERATED_DATASET}::test_digest_is_the_address_of_what_training_can_see",),
    ),
    Fault(
        "samples may be trained on and tested",
        DATASET,
        "(trained + tested > 1)",
        "(trained > 1)",
        (f"{TEST_FEDERATED_DATASET}::test_contradictions_are_refused",),
    ),
)
