"""Faults in how files of data are read, bounded and kept."""

from __future__ import annotations

from mutants.fault import Fault

CACHE = "fedsim/data/cache.py"
NPZ = "fedsim/data/reading/npz.py"
ARCHIVE = "fedsim/data/reading/archive.py"
READING_IMAGES = "fedsim/data/reading/images.py"
CWRU_FILES = "fedsim/data/reading/cwru.py"
SOUND = "fedsim/data/reading/sound.py"
TEST_HOSTILE_DATA_FILES = "tests/data/test_hostile_data_files.py"
TEST_IMAGES = "tests/data/test_images.py"
TEST_ARRAYS = "tests/data/test_arrays.py"
TEST_SOUND = "tests/data/test_sound.py"
TEST_CWRU = "tests/data/test_cwru.py"

FAULTS = (
    Fault(
        "the cache forgets the version",
        CACHE,
        "[LAYOUT, name, version, options]",
        "[LAYOUT, name, options]",
        (f"{TEST_HOSTILE_DATA_FILES}::test_the_cache_tells_sources_versions_and_options_apart",),
    ),
    Fault(
        "the cache forgets the options",
        CACHE,
        "[LAYOUT, name, version, options]",
        "[LAYOUT, name, version]",
        (f"{TEST_HOSTILE_DATA_FILES}::test_the_cache_tells_sources_versions_and_options_apart",),
    ),
    Fault(
        "the cache believes what it finds",
        CACHE,
        "if any(_digest(arrays[name]) != digest for name, digest in digests.items()):",
        "if not digests:",
        (f"{TEST_HOSTILE_DATA_FILES}::test_a_damaged_entry_of_the_cache_is_made_anew",),
    ),
    Fault(
        "the cache forgets the names of files",
        CACHE,
        "key.update(os.fsencode(name) + facts.encode())",
        "key.update(facts.encode())",
        (f"{TEST_IMAGES}::test_changed_files_are_read_again",),
    ),
    Fault(
        "the cache forgets when files were changed",
        CACHE,
        'facts = f"\\0{state.st_size}\\0{state.st_mtime_ns}\\0{state.st_ctime_ns}\\0"',
        'facts = f"\\0{state.st_size}\\0"',
        (f"{TEST_HOSTILE_DATA_FILES}::test_the_cache_tells_sources_versions_and_options_apart",),
    ),
    Fault(
        "the cache forgets what a file holds",
        CACHE,
        'hashlib.file_digest(file, "blake2b").digest()',
        "str(source.stat().st_size).encode()",
        (f"{TEST_HOSTILE_DATA_FILES}::test_the_cache_tells_sources_versions_and_options_apart",),
    ),
    Fault(
        "the cache forgets the encoding",
        CACHE,
        '"encoding": encoding, "digests"',
        '"encoding": {"kind": "Affine"}, "digests"',
        (f"{TEST_HOSTILE_DATA_FILES}::test_a_damaged_entry_of_the_cache_is_made_anew",),
    ),
    Fault(
        "the cache digests numbers without their shape",
        CACHE,
        'f"{array.dtype.str} {array.shape}"',
        'f"{array.dtype.str}"',
        (f"{TEST_HOSTILE_DATA_FILES}::test_a_damaged_entry_of_the_cache_is_made_anew",),
    ),
    Fault(
        "each array alone may be as large as all together",
        NPZ,
        "if size > most_bytes:",
        "if own > most_bytes:",
        (f"{TEST_HOSTILE_DATA_FILES}::test_all_arrays_together_are_bounded",),
    ),
    Fault(
        "a zip bomb is believed",
        NPZ,
        " or size > packed_at_most:",
        ":",
        (f"{TEST_HOSTILE_DATA_FILES}::test_what_an_archive_only_claims_to_hold_takes_no_memory",),
    ),
    Fault(
        "an array may have more numbers than its shape says",
        NPZ,
        "member.tell() + size != info.file_size",
        "member.tell() + size > info.file_size",
        (f"{TEST_HOSTILE_DATA_FILES}::test_hostile_archives_of_arrays",),
    ),
    Fault(
        "arrays of columns stay as they lie",
        NPZ,
        'order="C"',
        'order="A"',
        (f"{TEST_ARRAYS}::test_samples_are_what_they_were",),
    ),
    Fault(
        "numbers of other machines keep their byte order",
        NPZ,
        'dtype.newbyteorder("=")',
        "dtype",
        (f"{TEST_ARRAYS}::test_samples_are_what_they_were",),
    ),
    Fault(
        "arrays of objects are checked by nobody",
        NPZ,
        "if dtype.hasobject:",
        "if dtype.hasobject and name is None:",
        (f"{TEST_HOSTILE_DATA_FILES}::test_a_pickle_among_the_arrays_is_not_opened",),
    ),
    Fault(
        "what is unpacked has no bound",
        "fedsim/data/reading/archive.py",
        "if size > most_bytes:",
        "if len(chunk) > most_bytes:",
        (f"{TEST_HOSTILE_DATA_FILES}::test_json_by_gzip_is_bounded_and_whole",),
    ),
    Fault(
        "links in archives are files",
        ARCHIVE,
        "if not parts or not member.isreg() or member.sparse is not None:",
        "if not parts or member.sparse is not None:",
        (f"{TEST_HOSTILE_DATA_FILES}::test_hostile_archives_of_images",),
    ),
    Fault(
        "an archive may end anywhere",
        ARCHIVE,
        "if stream.last != END:",
        "if stream.last is None:",
        (f"{TEST_HOSTILE_DATA_FILES}::test_hostile_archives_of_images",),
    ),
    Fault(
        "an archive has no bound",
        ARCHIVE,
        "if position > MOST_BYTES:",
        "if position < 0:",
        (f"{TEST_HOSTILE_DATA_FILES}::test_an_archive_without_end_is_given_up",),
    ),
    Fault(
        "the checksum of an archive is not read",
        ARCHIVE,
        "while stream.read(CHUNK_BYTES):",
        "while False:",
        (f"{TEST_HOSTILE_DATA_FILES}::test_hostile_archives_of_images",),
    ),
    Fault(
        "images stand in the order of the archive",
        READING_IMAGES,
        "order = sorted(decoded)",
        "order = list(decoded)",
        (f"{TEST_IMAGES}::test_folders_say_whose_and_what",),
    ),
    Fault(
        "images lie on their side",
        READING_IMAGES,
        "values.transpose(2, 0, 1)",
        "values.transpose(2, 1, 0)",
        (f"{TEST_IMAGES}::test_folders_say_whose_and_what",),
    ),
    Fault(
        "a sound may end before it says",
        "fedsim/data/reading/sound.py",
        "if len(data) != samples * SAMPLE_BYTES:",
        "if len(data) > samples * SAMPLE_BYTES:",
        (f"{TEST_SOUND}::test_what_is_no_such_sound_is_refused_in_one_sentence",),
    ),
    Fault(
        "a last window is lost to the bound of memory",
        "fedsim/data/reading/windows.py",
        "(values - length) // stride + 1 for",
        "(values - length) // stride for",
        (f"{TEST_CWRU}::test_the_bound_of_memory_counts_every_window",),
    ),
    Fault(
        "all recordings have the first one's scale",
        CWRU_FILES,
        "(scale[place] if",
        "(scale[0] if",
        (f"{TEST_CWRU}::test_windows_hold_the_measurements_in_g",),
    ),
    Fault(
        "a file with two signals gives the first",
        CWRU_FILES,
        "return names[0] if names else None",
        "return there[0] if names else None",
        (f"{TEST_CWRU}::test_a_file_with_another_ones_signal_alone_is_read",),
    ),
    Fault(
        "the mel scale breaks at 1000 Hz",
        SOUND,
        "np.asarray(frequency_hz) / 700.0",
        "np.asarray(frequency_hz) / 1000.0",
        (f"{TEST_SOUND}::test_a_thousand_hertz_are_a_thousand_mels",),
    ),
    Fault(
        "mel bands do not overlap",
        SOUND,
        "rising = (at - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]",
        "rising = (at - points[1:-1, None]) / (points[1:-1] - points[:-2])[:, None] + 1e-9",
        (f"{TEST_SOUND}::test_the_weights_of_a_frequency_between_the_outer_peaks_add_up_to_one",),
    ),
    Fault(
        "the window of a spectrum is symmetric",
        SOUND,
        "np.pi * np.arange(self.window) / self.window",
        "np.pi * np.arange(self.window) / (self.window - 1)",
        (f"{TEST_SOUND}::test_the_spectra_are_those_of_scipy",),
    ),
    Fault(
        "full scale is one too small",
        SOUND,
        "FULL_SCALE = 32768.0",
        "FULL_SCALE = 32767.0",
        (f"{TEST_SOUND}::test_the_spectra_are_those_of_scipy",),
    ),
    Fault(
        "clips are cut at their beginning",
        SOUND,
        "kept = clip[: self.samples]",
        "kept = clip[-self.samples :]",
        (f"{TEST_SOUND}::test_a_sound_that_is_one_hop_late_is_one_frame_late",),
    ),
    Fault(
        "silence is 90 dB below",
        SOUND,
        "LEAST_POWER = 1e-10",
        "LEAST_POWER = 1e-9",
        (f"{TEST_SOUND}::test_silence_is_the_least_power_everywhere",),
    ),
)
