"""Faults in what data sets make of their files: samples, labels, tests."""

from __future__ import annotations

from mutants.fault import Fault

CMAPSS = "fedsim/data/cmapss.py"
CWRU_DATA = "fedsim/data/cwru.py"
UNSEEN_RECORDINGS = "fedsim/data/unseen_recordings.py"
SPEECH_COMMANDS = "fedsim/data/speech_commands.py"
FEMNIST = "fedsim/data/femnist.py"
LEAF = "fedsim/data/reading/leaf.py"
CIFAR10 = "fedsim/data/cifar10.py"
AG_NEWS = "fedsim/data/ag_news.py"
ENCODING = "fedsim/data/encoding.py"
DIGITS = "fedsim/data/digits.py"
ARRAYS = "fedsim/data/arrays.py"
TABLE = "fedsim/data/table.py"
NATURAL = "fedsim/data/partition/natural.py"
CSV_COLUMNS = "fedsim/data/reading/csv_columns.py"
TEST_CMAPSS = "tests/data/test_cmapss.py"
TEST_CWRU = "tests/data/test_cwru.py"
TEST_SPEECH_COMMANDS = "tests/data/test_speech_commands.py"
TEST_FEMNIST = "tests/data/test_femnist.py"
TEST_CIFAR10 = "tests/data/test_cifar10.py"
TEST_AG_NEWS = "tests/data/test_ag_news.py"
TEST_DIGITS = "tests/data/test_digits.py"
TEST_ARRAYS = "tests/data/test_arrays.py"
TEST_TABLE = "tests/data/test_table.py"

FAULTS = (
    Fault(
        "sensors are one column off",
        CMAPSS,
        "np.array(INFORMATIVE) + SETTINGS - 1",
        "np.array(INFORMATIVE) + SETTINGS",
        (f"{TEST_CMAPSS}::test_windows_of_an_engine_end_at_each_cycle_from_the_windows_length_on",),
    ),
    Fault(
        "remaining lives have no cap",
        CMAPSS,
        "np.minimum(life, self.cap) / self.cap",
        "life / self.cap",
        (f"{TEST_CMAPSS}::test_longer_lives_are_set_to_the_cap",),
    ),
    Fault(
        "a class begins behind its bound",
        CMAPSS,
        'side="right"',
        'side="left"',
        (f"{TEST_CMAPSS}::test_a_class_begins_at_its_bound",),
    ),
    Fault(
        "the first window of a test engine is the test",
        CMAPSS,
        "[:, -self.window :]",
        "[:, : self.window]",
        (f"{TEST_CMAPSS}::test_the_last_window_ends_with_the_last_cycle_and_its_life_is_its_own_engines",),
    ),
    Fault(
        "in its last cycle an engine has one left",
        CMAPSS,
        "(record.shape[1] - last)",
        "(record.shape[1] - last + 1)",
        (f"{TEST_CMAPSS}::test_windows_of_an_engine_end_at_each_cycle_from_the_windows_length_on",),
    ),
    Fault(
        "a stride does not shorten lives",
        CMAPSS,
        "self.stride * np.arange(len(x))",
        "np.arange(len(x))",
        (f"{TEST_CMAPSS}::test_a_stride_leaves_windows_out",),
    ),
    Fault(
        "test engines take part in the normalisation",
        CMAPSS,
        "self._normaliser(training)",
        "self._normaliser([*training, *testing])",
        (f"{TEST_CMAPSS}::test_samples_hold_the_sensors_in_the_order_of_the_file",),
    ),
    Fault(
        "lives of short engines are given to others",
        CMAPSS,
        "lives[kept]",
        "lives[: len(kept)]",
        (f"{TEST_CMAPSS}::test_the_last_window_ends_with_the_last_cycle_and_its_life_is_its_own_engines",),
    ),
    Fault(
        "the cap is not in the cache's key",
        CMAPSS,
        '"target", "cap", "bounds"}',
        '"target", "bounds"}',
        (f"{TEST_CMAPSS}::test_what_was_read_is_kept_and_options_count",),
    ),
    Fault(
        "test engines are trained on",
        CMAPSS,
        "[False] * len(training) + [True] * len(testing)",
        "[False] * len(training) + [False] * len(testing)",
        (f"{TEST_CMAPSS}::test_the_last_window_of_a_test_engine_is_a_test",),
    ),
    Fault(
        "windows lie across the border of tests",
        CWRU_DATA,
        "signal[:border], recording.signal[border:]",
        "signal[:border], recording.signal[max(border - 1, 0) :]",
        (f"{TEST_CWRU}::test_no_measurement_is_in_a_training_and_in_a_test_window",),
    ),
    Fault(
        "the head of a recording is tested",
        CWRU_DATA,
        "(1 - tested)",
        "tested",
        (f"{TEST_CWRU}::test_the_tail_of_each_recording_is_tested",),
    ),
    Fault(
        "tests are trained on and training is tested",
        CWRU_DATA,
        "[False, True] * len(kept)",
        "[True, False] * len(kept)",
        (f"{TEST_CWRU}::test_no_measurement_is_in_a_training_and_in_a_test_window",),
    ),
    Fault(
        "who is of an unseen load or of an unseen size is tested, where both are named",
        UNSEEN_RECORDINGS,
        "return None if len(found) == 2 else float(True in found)",
        "return float(True in found)",
        (
            "tests/data/test_unseen_recordings.py::test_unseen_loads_and_sizes_together_leave_out_what_is_unseen_in_one_respect_only",
        ),
    ),
    Fault(
        "what is of an unseen load is trained on",
        UNSEEN_RECORDINGS,
        "float(True in found)",
        "float(False in found)",
        (
            "tests/data/test_unseen_recordings.py::test_recordings_at_an_unseen_load_are_tests_and_all_others_are_trained_on_to_their_end",
        ),
    ),
    Fault(
        "a class that nobody trains on is tested",
        UNSEEN_RECORDINGS,
        "sorted(tested - trained)",
        "sorted(tested - tested)",
        (
            "tests/data/test_unseen_recordings.py::test_unseen_loads_and_sizes_that_leave_nothing_to_learn_or_to_test_are_refused",
        ),
    ),
    Fault(
        "unseen loads are not in the cache's key",
        CWRU_DATA,
        '"test_tail", "test_loads", "test_sizes_mil"}',
        '"test_tail", "test_sizes_mil"}',
        (f"{TEST_CWRU}::test_what_was_read_is_kept_and_options_count",),
    ),
    Fault(
        "windows that overlap are said to be one fewer",
        CWRU_DATA,
        "(self.window - 1) // self.stride",
        "(self.window - 1) // self.stride - 1",
        (
            "tests/data/test_unseen_recordings.py::test_the_end_of_each_recordings_training_stretch_takes_the_place_of_tests",
        ),
    ),
    Fault(
        "test engines of all fleets are tested, whatever is asked for",
        CMAPSS,
        "return self.subsets if self.test_subsets is None else self.test_subsets",
        "return self.subsets",
        (f"{TEST_CMAPSS}::test_another_fleet_may_be_tested",),
    ),
    Fault(
        "the deviation of a window is its variance",
        "fedsim/data/vibration_features.py",
        "deviation = values.std(",
        "deviation = values.var(",
        (f"{TEST_CWRU}::test_samples_have_mean_0_and_deviation_1_unless_they_are_constant",),
    ),
    Fault(
        "loads are told by the fault's size",
        CWRU_DATA,
        "[recording.load_hp for recording in kept], return_inverse",
        "[recording.size_mil for recording in kept], return_inverse",
        (f"{TEST_CWRU}::test_the_packed_form_and_matlab_files_say_the_same",),
    ),
    Fault(
        "features do not depend on their options",
        "fedsim/data/sound.py",
        "return dict(vars(self.log_mel))",
        'return {"bands": self.bands}',
        ("tests/data/test_sound.py::test_features_depend_on_all_their_options",),
    ),
    Fault(
        "one recording more is tested",
        "fedsim/data/spoken_digits.py",
        "recordings.index < self.test_recordings",
        "recordings.index <= self.test_recordings",
        ("tests/data/test_spoken_digits.py::test_the_first_five_recordings_of_each_digit_and_speaker_are_tests",),
    ),
    Fault(
        "validation is always tested",
        SPEECH_COMMANDS,
        'if self.validation == "test":',
        "if self.validation:",
        (f"{TEST_SPEECH_COMMANDS}::test_the_lists_say_what_is_tested",),
    ),
    Fault(
        "what the list names is trained on",
        SPEECH_COMMANDS,
        "[key in testing for key in keys]",
        "[key not in testing for key in keys]",
        (f"{TEST_SPEECH_COMMANDS}::test_the_lists_say_what_is_tested",),
    ),
    Fault(
        "validation that is to be dropped stays",
        SPEECH_COMMANDS,
        "if _key(file) not in unwanted",
        "if file not in unwanted",
        (f"{TEST_SPEECH_COMMANDS}::test_the_lists_say_what_is_tested",),
    ),
    Fault(
        "ink is light where it is dark",
        FEMNIST,
        'Affine(-1 / WHITE, 1.0) if self.ink == "dark" else Affine(1 / WHITE)',
        'Affine(1 / WHITE) if self.ink == "dark" else Affine(-1 / WHITE, 1.0)',
        (f"{TEST_FEMNIST}::test_a_model_sees_ink_as_one_and_paper_as_zero",),
    ),
    Fault(
        "what is upright is transposed",
        FEMNIST,
        "if self.transposed else",
        "if not self.transposed else",
        (f"{TEST_FEMNIST}::test_a_model_sees_ink_as_one_and_paper_as_zero",),
    ),
    Fault(
        "copies of other writers are left out",
        FEMNIST,
        "if writer[place] != before:",
        "if before is None:",
        (f"{TEST_FEMNIST}::test_the_second_copy_of_an_image_is_left_out_and_counted",),
    ),
    Fault(
        "copies with another label are left out",
        FEMNIST,
        "key = (label[place], pixels",
        "key = (0, pixels",
        (f"{TEST_FEMNIST}::test_the_second_copy_of_an_image_is_left_out_and_counted",),
    ),
    Fault(
        "the split of a packed file is the other way round",
        FEMNIST,
        'arrays["split"] != 0',
        'arrays["split"] == 0',
        (f"{TEST_FEMNIST}::test_both_kinds_of_files_give_the_same_samples",),
    ),
    Fault(
        "leaf's tests are trained on",
        LEAF,
        '(file, part == "test") for part',
        '(file, part == "train") for part',
        (f"{TEST_FEMNIST}::test_both_kinds_of_files_give_the_same_samples",),
    ),
    Fault(
        "leaf's users are in the order of files",
        LEAF,
        "np.repeat(owner.astype(np.int64), lengths)",
        "np.repeat(np.arange(len(lengths)), lengths)",
        (f"{TEST_FEMNIST}::test_both_kinds_of_files_give_the_same_samples",),
    ),
    Fault(
        "pixels are cut and not rounded",
        LEAF,
        "grey = np.rint(exact)",
        "grey = np.floor(exact)",
        (f"{TEST_FEMNIST}::test_pixels_of_few_digits_are_the_nearest_grey_levels",),
    ),
    Fault(
        "colours of records are interleaved",
        CIFAR10,
        ".reshape(-1, COLOURS, SIDE, SIDE)",
        ".reshape(-1, SIDE, SIDE, COLOURS).transpose(0, 3, 1, 2)",
        (f"{TEST_CIFAR10}::test_records_are_read_byte_by_byte",),
    ),
    Fault(
        "the first batch is tested",
        CIFAR10,
        "[name == BATCHES[-1] for",
        "[name == BATCHES[0] for",
        (f"{TEST_CIFAR10}::test_records_are_read_byte_by_byte",),
    ),
    Fault(
        "labels are those of other folders",
        CIFAR10,
        "np.searchsorted(np.array(CLASSES), kind)",
        "np.searchsorted(np.array(CLASSES), kind[::-1])",
        (f"{TEST_CIFAR10}::test_lossless_images_give_what_the_batches_give",),
    ),
    Fault(
        "validation is always trained on",
        "fedsim/data/cifar10.py",
        '(self.validation == "test")',
        '(self.validation == "tests")',
        ("tests/data/test_cinic10.py::test_the_validation_part_goes_where_it_is_wanted",),
    ),
    Fault(
        "characters begin with 0",
        AG_NEWS,
        "enumerate(ALPHABET, start=1)",
        "enumerate(ALPHABET, start=0)",
        (f"{TEST_AG_NEWS}::test_texts_are_read_as_the_source_has_them",),
    ),
    Fault(
        "capital letters are unknown",
        AG_NEWS,
        "text.lower()[:length]",
        "text[:length]",
        (f"{TEST_AG_NEWS}::test_texts_are_read_as_the_source_has_them",),
    ),
    Fault(
        "long texts lose their beginning",
        AG_NEWS,
        "text.lower()[:length]",
        "text.lower()[-length:]",
        (f"{TEST_AG_NEWS}::test_what_is_longer_loses_its_end_and_the_remarks_count_it",),
    ),
    Fault(
        "one-hot rows are one off",
        ENCODING,
        "np.arange(1, self.size + 1)",
        "np.arange(self.size)",
        (f"{TEST_AG_NEWS}::test_one_hot_rows_say_which_character_stands_where",),
    ),
    Fault(
        "the order of characters in an n-gram does not count",
        ENCODING,
        "place * (self.size + 1) + ids",
        "place + ids",
        (
            f"{TEST_AG_NEWS}::test_ngrams_are_places_of_a_sum_worked_out_by_hand",
            f"{TEST_AG_NEWS}::test_ngrams_are_those_that_whole_numbers_of_any_length_say",
        ),
    ),
    Fault(
        "an n-gram that ends in a blank is left out",
        ENCODING,
        "has_some |= ids > 0",
        "has_some = ids > 0",
        (f"{TEST_AG_NEWS}::test_ngrams_are_places_of_a_sum_worked_out_by_hand",),
    ),
    Fault(
        "the last n-gram is left out",
        ENCODING,
        "stored.shape[1] - self.n + 1",
        "stored.shape[1] - self.n",
        (f"{TEST_AG_NEWS}::test_ngrams_are_those_that_whole_numbers_of_any_length_say",),
    ),
    Fault(
        "offsets are forgotten",
        ENCODING,
        "if self.offset != 0.0:",
        "if self.offset > 1.0:",
        (f"{TEST_FEMNIST}::test_a_model_sees_ink_as_one_and_paper_as_zero",),
    ),
    Fault(
        "white digits are 16/15",
        DIGITS,
        "WHITE = 16.0",
        "WHITE = 15.0",
        (f"{TEST_DIGITS}::test_the_digits_are_the_published_ones",),
    ),
    Fault(
        "larger digits are half a pixel off",
        DIGITS,
        "(np.arange(pixels) + 0.5) * side / pixels - 0.5",
        "np.arange(pixels) * side / pixels",
        (f"{TEST_DIGITS}::test_a_slope_stays_a_slope",),
    ),
    Fault(
        "many classes take one byte",
        ARRAYS,
        "1 if classes <= BYTE else 2",
        "1",
        (f"{TEST_ARRAYS}::test_more_classes_than_labels_may_be_declared",),
    ),
    Fault(
        "tests of a file are trained on",
        ARRAYS,
        'test=_set_aside(path, arrays["test"]) if "test" in arrays else None',
        "test=None",
        (f"{TEST_ARRAYS}::test_tests_are_those_of_the_file",),
    ),
    Fault(
        "what is not finite is let in",
        ARRAYS,
        "not (values.min() >= -LARGEST and values.max() <= LARGEST)",
        "(values.min() < -LARGEST or values.max() > LARGEST)",
        (f"{TEST_ARRAYS}::test_arrays_that_cannot_be_learned_are_refused",),
    ),
    Fault(
        "tests take part in standardising",
        TABLE,
        "slice(None) if test is None else ~test",
        "slice(None)",
        (f"{TEST_TABLE}::test_standardised_features_have_mean_0_and_deviation_1_over_training_rows",),
    ),
    Fault(
        "columns stand in alphabetical order",
        CSV_COLUMNS,
        "places.of(name) for name in named]",
        "places.of(name) for name in sorted(named)]",
        (f"{TEST_TABLE}::test_features_stand_in_the_order_in_which_they_are_named",),
    ),
    Fault(
        "machines are matched in order although all sensors have their names",
        NATURAL,
        "if not clients or not all(name in number for name in clients):",
        "if True:",
        (f"{TEST_TABLE}::test_sensors_that_are_called_as_machines_have_their_samples",),
    ),
    Fault(
        "an unseen machine is one that a sensor has",
        NATURAL,
        "others = ranked[~np.isin(ranked, seen)]",
        "others = ranked[clients.count :]",
        (f"{TEST_TABLE}::test_unseen_machines_are_those_that_no_sensor_is_called_as",),
    ),
    Fault(
        "another file than UCI's is taken for the digits",
        DIGITS,
        "if hashlib.sha256(content).hexdigest() != SHA256:",
        "if not content:",
        (f"{TEST_DIGITS}::test_a_file_with_other_numbers_and_one_that_is_not_there_are_named",),
    ),
)
