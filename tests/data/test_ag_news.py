"""AG News, in the source's layout and in one with a line of names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tiers import drawn

from fedsim import quick
from fedsim.data import ag_news
from fedsim.data.ag_news import ALPHABET, CLASS_NAMES, AgNews, character_ids
from fedsim.data.encoding import HashedNgrams
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError

TRAIN = '''"3","Oil, up","Prices rose\\\\by  #36;2 ""today"""
"1","Talks","A, B and C"
"2","Cup","They won 3-1!"
"4","Chip","It is tiny"
'''
TEST = '"4","Robot","It walks"\n"1","Vote","They vote"\n'


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "ag_news_csv"
    place.mkdir()
    (place / "train.csv").write_text(TRAIN)
    (place / "test.csv").write_text(TEST)
    return place


def raw(path, **options):
    return AgNews(path=str(path), **options).raw(Clients(2), np.random.default_rng)


def text(ids) -> str:
    """What the ids of one sample spell, in reading order; blanks for what is unknown."""
    return "".join(ALPHABET[place - 1] if place else " " for place in ids).rstrip(" ")


def test_the_alphabet_is_that_of_the_paper():
    """70 characters (Zhang et al. 2015, section 2.2): 26 letters, 10 digits, 33 others and the new line."""
    assert len(ALPHABET) == 26 + 10 + 33 + 1
    assert len(set(ALPHABET)) == 69
    assert ALPHABET.count("-") == 2


def test_texts_are_read_as_the_source_has_them(folder):
    made = raw(folder, reverse=False)
    assert (made.x.shape, made.x.dtype, made.classes, made.class_names) == ((6, 1014), np.uint8, 4, CLASS_NAMES)
    assert text(made.x[0]) == 'oil, up prices rose\\\\by  #36;2 "today"'
    assert made.y.tolist() == [2, 0, 1, 3, 3, 0]
    assert made.test.tolist() == [False] * 4 + [True] * 2
    assert made.sample_bytes == 1015


def test_characters_stand_in_backward_order_unless_asked_otherwise(folder):
    assert text(raw(folder).x[1]) == "talks a, b and c"[::-1]


def test_what_is_longer_loses_its_end_and_the_remarks_count_it(folder):
    made = raw(folder, length=16)
    assert text(made.x[4]) == "robot it walks"[::-1]
    assert text(made.x[2]) == "cup they won 3-1"[::-1]
    assert made.remarks == ("of 6 texts, 2 are longer than 16 characters and lost their end",)


def test_one_hot_rows_say_which_character_stands_where(folder):
    made = raw(folder, encoding="one_hot")
    assert made.encoding.sample_shape(made.x.shape[1:]) == (70, 1014)
    decoded = made.encoding.decode(made.x[:2])
    assert decoded.sum() == (made.x[:2] > 0).sum()
    assert decoded[1, ALPHABET.index("c"), 0] == 1.0


def test_ngrams_are_places_of_a_sum_worked_out_by_hand(folder):
    """A pair is 71 times the first letter and the second one; here it has one of 100 places."""
    made = raw(folder, encoding="ngrams", ngram=2, buckets=100, length=16, reverse=False)
    [vote] = made.encoding.decode(made.x[5:6])  # "vote they vote", and two blanks
    assert text(made.x[5]) == "vote they vote"
    v, o, t, e, h, y = (ALPHABET.index(letter) + 1 for letter in "votehy")
    pairs = [(v, o), (o, t), (t, e), (e, 0), (0, t), (t, h), (h, e), (e, y), (y, 0), (0, v)]
    assert np.flatnonzero(vote).tolist() == sorted({(71 * first + second) % 100 for first, second in pairs})
    assert set(vote.tolist()) == {0.0, 1.0}
    assert (71 * 22 + 15) % 100 == 77  # v, o
    assert vote[77] == 1.0


def test_runs_of_blanks_are_no_ngrams(folder):
    made = raw(folder, encoding="ngrams", ngram=1, buckets=71, length=16, reverse=False)
    decoded = made.encoding.decode(made.x)
    assert (decoded[:, 0] == 0).all()
    assert np.flatnonzero(decoded[4]).tolist() == sorted({ALPHABET.index(one) + 1 for one in "robotitwalks"})


@drawn(60)
@given(
    words=st.lists(st.text("ab, é", max_size=12), min_size=1, max_size=4),
    n=st.integers(1, 8),
    buckets=st.integers(2, 1_000_000),
)
def test_ngrams_are_those_that_whole_numbers_of_any_length_say(words, n, buckets):
    """Python's whole numbers do not end at 64 bits; the encoding's do."""
    ids = character_ids(words, 12, reverse=False)
    decoded = HashedNgrams(len(ALPHABET), n, buckets).decode(ids)
    for row, made in zip(ids.tolist(), decoded, strict=True):
        runs = [row[first : first + n] for first in range(12 - n + 1)]
        numbers = [sum(one * 71 ** (n - 1 - place) for place, one in enumerate(run)) for run in runs]
        assert np.flatnonzero(made).tolist() == sorted({number % buckets for number in numbers if number})


def test_all_encodings_are_of_one_file_in_the_cache_and_make_other_data(folder, cache_folder, streams):
    others = [{"encoding": "one_hot"}, {"encoding": "ngrams"}, {"encoding": "ngrams", "ngram": 4}]
    partition = {"name": "iid"}
    made = [
        AgNews(path=str(folder), partition=partition, **more).load(Clients(2), streams(1)) for more in [{}, *others]
    ]
    assert [data.sample_shape for data in made] == [(1014,), (70, 1014), (4096,), (4096,)]
    assert [data.vocabulary for data in made] == [71, None, None, None]
    assert len({data.digest for data in made}) == 4
    assert len(list(cache_folder.iterdir())) == 1


@pytest.mark.parametrize("key", ["ngram", "buckets"])
def test_keys_of_ngrams_are_refused_where_there_are_none(key):
    with pytest.raises(ValidationError, match=f"{key}=2 is of encoding ngrams, and here it is one_hot"):
        AgNews(encoding="one_hot", **{key: 2})
    assert AgNews(**AgNews().model_dump()) == AgNews()  # as a run folder has it: defaults are said there


def test_samples_shorter_than_an_ngram_are_refused():
    with pytest.raises(ValueError, match="2 ids have no run of 3"):
        HashedNgrams(70, 3, 100).sample_shape((2,))


def test_ids_are_for_an_embedding_of_71(folder):
    made = raw(folder, length=1024)
    assert (made.encoding.vocabulary, made.encoding.sample_shape(made.x.shape[1:])) == (71, (1024,))


@drawn(100)
@given(words=st.lists(st.text(), min_size=1, max_size=4), length=st.integers(1, 40))
def test_ids_spell_the_text_whatever_it_is(words, length):
    ids = character_ids(words, length, reverse=False)
    for row, word in zip(ids, words, strict=True):
        expected = "".join(c if c in ALPHABET else " " for c in word.lower()[:length])
        assert text(row) == expected.rstrip(" ")
        [backward] = character_ids([word], length, reverse=True)
        used = min(len(word.lower()), length)
        assert np.array_equal(backward[:used], row[:used][::-1])
        assert (row[used:] == 0).all()


def test_a_line_of_names_says_where_class_and_text_stand(folder):
    (folder / "named.csv").write_text('"source","label","text"\nx,2,"They won"\ny,4,"It runs"\n')
    made = raw(folder, train="named.csv", reverse=False)
    assert (text(made.x[0]), made.y.tolist()) == ("they won", [1, 3, 3, 0])


def test_one_file_is_read_without_a_test_set_of_its_own(folder):
    made = raw(folder / "train.csv")
    assert (len(made.y), made.test) == (4, None)


def test_what_was_read_is_kept(folder, cache_folder):
    assert np.array_equal(raw(folder).x, raw(folder).x)
    assert len(list(cache_folder.iterdir())) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('"5","a","b"\n', r"train\.csv:1: the class '5' must be 1, 2, 3 or 4 \(World"),
        (TRAIN + '"0","a","b"\n', r"train\.csv:5: the class '0'"),
        (TRAIN + '"nan","a","b"\n', r"train\.csv:5: the class 'nan'"),
        (TRAIN + '"1","a"\n', r"train\.csv:5: 2 columns, and 3 are needed"),
        (TRAIN + '"1","a","b","c"\n', r"train\.csv:5: 4 columns, and 3 are needed"),
        (TRAIN + '"1","a","b', r"train\.csv:5: unexpected end of data; is this a CSV file\?"),
        (TRAIN + '"1","a","' + "b" * 200_000 + '"\n', r"train\.csv:5: field larger than field limit"),
        ("", r"train\.csv: has no texts"),
        ("label,words\n1,a\n", r"train\.csv:1: no column is called text, title or description.*'label', 'words'"),
        ("\0\0\0\0", r"train\.csv:1: 1 columns, and 3 are needed"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(folder, cache_folder, content, message):
    (folder / "train.csv").write_text(content)
    with pytest.raises(UserError, match=message):
        raw(folder)
    assert not list(cache_folder.iterdir())


@pytest.mark.parametrize(("row", "line"), [("1" + "," * 60, 131), ('1,"a",' + '"\n",' * 20, 142)])
def test_a_row_without_an_end_is_not_parsed(folder, monkeypatch, row, line):
    monkeypatch.setattr(ag_news, "LONGEST_ROW", 50)
    (folder / "test.csv").write_text("1,a,b\n" * 30 + "\n" * 100 + row + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=rf"test.csv:{line}: a row has more than 50 characters"):
        raw(folder)


def test_no_more_texts_are_read_than_may_be_looked_at(folder, monkeypatch):
    monkeypatch.setattr(quick, "MOST_SAMPLES", 40)
    (folder / "train.csv").write_text("1,a,b\n" * 41 + "5,not looked at\n", encoding="utf-8")
    with quick.in_seconds(), pytest.raises(UserError, match="train.csv: has 41 samples, and at most 40 are looked at"):
        raw(folder)


def test_binary_and_missing_files_are_refused(folder):
    (folder / "train.csv").write_bytes(b"\x1f\x8b\x08\0\xff\xff")
    with pytest.raises(UserError, match=r"is compressed .gzip."):
        raw(folder)
    (folder / "train.csv").rename(folder / "train2.csv")
    with pytest.raises(UserError, match=r"has no 'train\.csv'; did you mean 'train2\.csv'\?"):
        raw(folder)
    with pytest.raises(UserError, match="is not there; the folder ag_news_csv"):
        raw(folder / "none")


@pytest.mark.parametrize("options", [{"length": 15}, {"encoding": "words"}, {"reverse": 1}, {"train": ""}])
def test_a_key_outside_its_range_is_refused(options):
    with pytest.raises(ValidationError):
        AgNews(**options)


@pytest.mark.data
def test_the_published_test_set_has_its_published_numbers(streams):
    """7,600 tests, 1,900 of each class; the first one as printed in the source's file."""
    data = AgNews(train="train_subset.csv", reverse=False).load(Clients(10), streams(1))
    assert len(data.y) == 12_619 + 7_600
    assert np.bincount(data.y[data.test_ids]).tolist() == [1900] * 4
    assert (data.classes, data.vocabulary, data.sample_shape) == (4, 71, (1014,))
    counts = np.bincount(data.y[np.concatenate(data.train_ids)])
    assert (counts.min(), counts.max(), counts.sum()) == (3118, 3171, 12_619)
    first = text(data.x[data.test_ids[0]])
    assert first.startswith("fears for t n pension after talks unions representing workers at turner   newall say")
    assert data.remarks == ()  # none is longer than 1014 characters


def test_a_sample_is_read_as_it_was_written(tmp_path):
    for reverse in (True, False):
        settings = AgNews(path=str(tmp_path), reverse=reverse, length=40)
        [stored] = character_ids(["Some WORDS, and 3 more"], 40, reverse=reverse)
        assert settings.text(stored) == "some words, and 3 more"
