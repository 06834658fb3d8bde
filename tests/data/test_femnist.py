"""FEMNIST from both kinds of files: the same samples, ink on nothing, no image twice, each writer's own tests."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.data.femnist import CHARACTERS, Femnist
from fedsim.data.raw_dataset import Clients
from fedsim.data.reading.leaf import read_leaf
from fedsim.data.reading.npz import Wanted, read_npz
from fedsim.errors import UserError
from fedsim.quick import in_seconds

WRITERS = ("f0001_10", "f0002_11", "f0003_12")
PER_WRITER = 6


def handwriting(seed: int = 1) -> dict[str, np.ndarray]:
    """Dark strokes in the middle of light paper: six images by each of three writers, the last of each for tests."""
    rng = np.random.default_rng(seed)
    samples = len(WRITERS) * PER_WRITER
    images = np.full((samples, 28, 28), 255, np.uint8)
    images[:, 6:20, 8:22] = rng.integers(0, 256, (samples, 14, 14))
    return {
        "images": images,
        "labels": rng.integers(0, 62, samples).astype(np.uint8),
        "writer": np.repeat(np.arange(len(WRITERS)), PER_WRITER).astype(np.int16),
        "split": np.tile([0, 0, 0, 0, 0, 1], len(WRITERS)).astype(np.uint8),
        "writer_ids": np.array(WRITERS),
    }


def leaf(arrays: dict[str, np.ndarray], split: int) -> dict:
    """What LEAF's preprocessing writes for one part."""
    part = arrays["split"] == split
    data = {}
    for number, user in enumerate(WRITERS):
        mine = part & (arrays["writer"] == number)
        pixels = arrays["images"][mine].reshape(-1, 784) / 255
        data[user] = {"x": pixels.tolist(), "y": arrays["labels"][mine].tolist()}
    return {"users": list(WRITERS), "num_samples": [len(user["y"]) for user in data.values()], "user_data": data}


def write_leaf(folder, arrays) -> None:
    for split, part in enumerate(("train", "test")):
        (folder / "data" / part).mkdir(parents=True)
        text = json.dumps(leaf(arrays, split)).encode()
        if part == "train":
            (folder / "data" / part / "all_data_0_niid_0_keep_0_train_9.json.gz").write_bytes(gzip.compress(text))
        else:
            (folder / "data" / part / "all_data_0_niid_0_keep_0_test_9.json").write_bytes(text)


@pytest.fixture
def raw(tmp_path, streams):
    """The raw data set of an .npz file with *arrays*, or of *path*."""

    def made(arrays=None, path=None, **options):
        if path is None:
            path = tmp_path / "femnist.npz"
            np.savez_compressed(path, **(handwriting() if arrays is None else arrays))
        return Femnist(path=str(path), **options).raw(Clients(2), streams(1))

    return made


def test_a_model_sees_ink_as_one_and_paper_as_zero(raw):
    made = raw()
    decoded = made.encoding.decode(made.x)
    assert decoded.shape == (18, 1, 28, 28)
    assert np.array_equal(decoded[:, 0, 0], np.zeros((18, 28), np.float32))
    assert np.allclose(decoded[:, 0], 1 - handwriting()["images"] / 255, atol=1e-7)
    assert made.x.dtype == np.uint8


def test_both_kinds_of_files_give_the_same_samples(raw, tmp_path):
    arrays = handwriting()
    write_leaf(tmp_path / "leaf", arrays)
    by_json, by_npz = raw(path=tmp_path / "leaf"), raw(arrays)
    order = np.lexsort((by_npz.owner, by_npz.test))
    for name in ("x", "y", "owner", "test"):
        assert np.array_equal(getattr(by_json, name), getattr(by_npz, name)[order]), name
    assert by_json.owner_names == by_npz.owner_names == WRITERS
    assert by_json.sample_bytes == by_npz.sample_bytes == 785


def test_json_files_are_read_once(raw, tmp_path, monkeypatch):
    write_leaf(tmp_path / "leaf", handwriting())
    first = raw(path=tmp_path / "leaf")
    with monkeypatch.context() as patched:
        patched.setattr("fedsim.data.femnist.read_leaf", lambda *_: pytest.fail("read again"))
        (tmp_path / "leaf" / "data" / "raw_data").mkdir()
        assert np.array_equal(raw(path=tmp_path / "leaf").x, first.x)
    assert len(raw(path=tmp_path / "leaf", transposed=True).x) == 18
    (tmp_path / "leaf" / "data" / "test" / "all_data_0_niid_0_keep_0_test_9.json").unlink()
    assert len(raw(path=tmp_path / "leaf").x) == 15


def test_json_files_may_lie_side_by_side(raw, tmp_path):
    for split, part in enumerate(("train", "test")):
        (tmp_path / f"all_data_{part}_9.json").write_text(json.dumps(leaf(handwriting(), split)), encoding="utf-8")
    assert np.bincount(raw(path=tmp_path).test).tolist() == [15, 3]


def test_pixels_of_few_digits_are_the_nearest_grey_levels(raw, tmp_path):
    written = leaf(handwriting(), 0)
    for user in written["user_data"].values():
        user["x"] = [[round(pixel, 7) for pixel in image] for image in user["x"]]
    (tmp_path / "train.json").write_text(json.dumps(written), encoding="utf-8")
    arrays = handwriting()
    assert np.array_equal(raw(path=tmp_path).x[:, 0], arrays["images"][arrays["split"] == 0])


def test_the_second_copy_of_an_image_is_left_out_and_counted(raw):
    arrays = handwriting()
    arrays["images"][5], arrays["labels"][5] = arrays["images"][0], arrays["labels"][0]
    arrays["images"][8], arrays["labels"][8] = arrays["images"][1], arrays["labels"][1]  # another writer's
    made = raw(arrays)
    assert len(made.y) == 17
    assert np.array_equal(made.x[:, 0], np.delete(arrays["images"], 5, axis=0))
    assert made.remarks == ("second copies, pixel for pixel, by the same writer, left out: 1",)
    kept = raw(arrays, duplicates="keep")
    assert (len(kept.y), kept.remarks) == (18, ())
    arrays["labels"][5] = (arrays["labels"][0] + 1) % 62  # the same image, as another character
    assert len(raw(arrays).y) == 18


def test_light_ink_on_a_dark_ground_decodes_to_the_same(raw):
    arrays = handwriting()
    dark = raw(arrays)
    light = raw(arrays | {"images": 255 - arrays["images"]}, ink="light")
    assert np.allclose(dark.encoding.decode(dark.x), light.encoding.decode(light.x), atol=1e-6)


@pytest.mark.parametrize(("ink", "turned"), [("dark", True), ("light", False)])
def test_ink_that_contradicts_the_images_is_refused(raw, ink, turned):
    arrays = handwriting()
    if turned:
        arrays["images"] = 255 - arrays["images"]
    other = {"dark": "light", "light": "dark"}[ink]
    with pytest.raises(UserError, match=f"femnist.npz: .*so the ink is {other}, but ink is '{ink}'; set ink: {other}"):
        raw(arrays, ink=ink)


def test_transposed_images_are_put_upright(raw):
    arrays = handwriting()
    lying = arrays | {"images": arrays["images"].transpose(0, 2, 1)}
    assert np.array_equal(raw(lying, transposed=True).x, raw(arrays).x)
    assert not np.array_equal(raw(lying).x, raw(arrays).x)


def test_every_writer_keeps_its_own_tests(tmp_path, streams):
    np.savez(tmp_path / "femnist.npz", **handwriting())
    data = Femnist(path=str(tmp_path / "femnist.npz")).load(Clients(3), streams(1))
    assert data.client_samples.tolist() == [5, 5, 5]
    assert [ids.tolist() for ids in data.client_test_ids] == [[5], [11], [17]]
    assert data.test_ids.tolist() == [5, 11, 17]


def test_unseen_writers_tests_are_nobody_elses_and_a_share_may_be_asked_for(tmp_path, streams):
    np.savez(tmp_path / "femnist.npz", **handwriting())
    path = str(tmp_path / "femnist.npz")
    data = Femnist(path=path, unseen_clients=1).load(Clients(2), streams(1))
    assert len(data.unseen_test_ids[0]) == 6
    assert not np.isin(data.test_ids, data.unseen_test_ids[0]).any()
    half = Femnist(path=path, test_fraction=0.5).load(Clients(3), streams(1))
    assert [len(ids) for ids in half.client_test_ids] == [3, 3, 3]
    assert half.client_samples.tolist() == [3, 3, 3]


def test_a_source_with_tests_only_is_split_anew_and_says_so(raw):
    arrays = handwriting()
    made = raw(arrays | {"split": np.ones_like(arrays["split"])})
    assert made.test is None
    assert "for tests only, so that test_fraction says which are for tests" in made.remarks[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.arange(45, 63, dtype=np.uint8)}, r"labels\[17\]=62 must be from 0 to 61: 10 digits"),
        ({"labels": -np.ones(18, np.int64)}, r"labels\[0\]=-1 must be from 0 to 61"),
        ({"writer": np.full(18, 3, np.int16)}, r"writer\[0\]=3 must be from 0 to 2: writer_ids has so many names"),
        ({"split": np.full(18, 2, np.uint8)}, r"split\[0\]=2 must be from 0 to 1: 0 is for training and 1 for tests"),
        ({"images": np.zeros((18, 32, 32), np.uint8)}, "images of 32 x 32 pixels; those of FEMNIST have 28 x 28"),
        (
            {"images": np.zeros((18, 28, 28), np.float32)},
            r"'images' holds float32 .* must hold uint8, with 3 dimensions",
        ),
        ({"images": np.zeros((18, 784), np.uint8)}, r"'images' has shape \(18, 784\), and must hold uint8, with 3"),
        ({"labels": np.zeros(17, np.uint8)}, "images has 18 rows and labels has 17; both need one per sample"),
    ],
)
def test_arrays_that_are_not_femnist_are_refused(raw, change, message):
    with pytest.raises(UserError, match=f"femnist.npz: .*{message}"):
        raw(handwriting() | change)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ({"x": [[0.5] * 784], "y": [1]}, r"x\[0\]\[0\]=0.5, and pixels must be multiples of 1/255"),
        ({"x": [[1.0] * 783 + [float("nan")]], "y": [1]}, r"x\[0\]\[783\]=nan, and pixels must be"),
        ({"x": [[1.0] * 783 + [float("inf")]], "y": [1]}, r"x\[0\]\[783\]=inf, and pixels must be"),
        ({"x": [[1.0] * 783 + [2.0]], "y": [1]}, r"x\[0\]\[783\]=2, and pixels must be"),
        ({"x": [[1.0] * 783], "y": [1]}, "must each be a list of 784 numbers"),
        ({"x": [[1.0] * 784, [1.0]], "y": [1, 2]}, "rows of different lengths"),
        ({"x": [["1"] * 784], "y": [1]}, "has what is no number"),
        ({"x": [[1.0] * 784], "y": [1, 2]}, "has 1 images and 2 labels"),
        ({"x": [[1.0] * 784], "y": [1.5]}, "must be whole numbers"),
        ({"x": [[1.0] * 783 + [10**400]], "y": [1]}, "has what is no number"),
        ({"x": [[True] * 784], "y": [1]}, "has what is no number"),
        ({"x": [[None] * 784], "y": [1]}, "has what is no number"),
        ({"x": [[[1.0]] * 784], "y": [1]}, "must each be a list of 784 numbers"),
        ({"x": [1.0, 1.0], "y": [1, 1]}, "must each be a list of 784 numbers"),
        ({"x": [[1.0] * 783 + [-1e-3]], "y": [1]}, r"x\[0\]\[783\]=-0.001, and pixels must be"),
        ({"x": [[1] * 783 + [pow(255, -1, 2**64) - 2**64]], "y": [1]}, r"x\[0\]\[783\]=.*, and pixels must be"),
        ({"x": [[1.0] * 784], "y": [2**64]}, "has what is no number"),
        ({"x": [[1.0] * 784], "y": [[1]]}, "must be whole numbers"),
        ({"x": [[1.0] * 784]}, "must have two lists"),
        ({"x": 3, "y": [1]}, "must have two lists"),
        ([], "must have two lists"),
    ],
)
def test_users_that_are_not_leafs_are_refused(raw, tmp_path, samples, message):
    (tmp_path / "train.json").write_text(json.dumps({"user_data": {"f0001_10": samples}}), encoding="utf-8")
    with pytest.raises(UserError, match=f"train.json: .*{message}"):
        raw(path=tmp_path)


def test_names_may_stand_in_any_order_and_others_are_passed_over(raw, tmp_path):
    written = leaf(handwriting(), 0)
    users = {name: {"z": [{"y": 3}], "y": user["y"], "x": user["x"]} for name, user in written["user_data"].items()}
    other = {"a": [1], "user_data": users, "users": [], "hierarchies": [[["x"]], None], "num_samples": {}}
    (tmp_path / "train.json").write_text(json.dumps(other, indent=1), encoding="utf-8")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "train.json").write_text(json.dumps(written), encoding="utf-8")
    found, plain = raw(path=tmp_path), raw(path=tmp_path / "plain")
    for name in ("x", "y", "owner"):
        assert np.array_equal(getattr(found, name), getattr(plain, name)), name


def test_of_two_that_have_one_name_the_last_counts(raw, tmp_path):
    written = leaf(handwriting(), 0)
    first, second, _ = (json.dumps(user) for user in written["user_data"].values())
    text = f'{{"user_data": 3, "user_data": {{"a": {first}, "b": {first}, "a": {second}}}}}'
    (tmp_path / "train.json").write_text(text, encoding="utf-8")
    found = raw(path=tmp_path)
    arrays = handwriting()
    assert found.owner_names == ("a", "b")
    assert np.array_equal(found.x[found.owner == 0, 0], arrays["images"][6:11])
    assert np.array_equal(found.x[found.owner == 1, 0], arrays["images"][:5])


def test_numbers_of_which_hardly_two_are_written_alike_are_pixels_too(raw, tmp_path):
    arrays = handwriting()
    written = leaf(arrays, 0)
    noise = np.random.default_rng(1).uniform(-1e-8, 1e-8, (len(WRITERS), 5, 784))
    for user, some in zip(written["user_data"].values(), noise, strict=True):
        user["x"] = (np.array(user["x"]) + some).tolist()
    (tmp_path / "train.json").write_text(json.dumps(written), encoding="utf-8")
    assert np.array_equal(raw(path=tmp_path).x[:, 0], arrays["images"][arrays["split"] == 0])


@pytest.mark.parametrize("packed", [True, False])
def test_a_large_file_takes_little_more_memory_than_its_images(tmp_path, packed):
    """1,000 images of 784 bytes in 4 MB of text, of which `json` would make 25 MB of numbers."""
    samples = {"x": [[1.0] * 783 + [0.2]] * 1000, "y": [1] * 1000}
    text = json.dumps({"user_data": {"a": samples}}).encode()
    file = tmp_path / "train.json"
    file.write_bytes(gzip.compress(text, 1) if packed else text)
    tracemalloc.start()
    try:
        found = read_leaf(tmp_path, [(file, False)], 28)
        assert tracemalloc.get_traced_memory()[1] < 3 * found.images.nbytes + 7_000_000
    finally:
        tracemalloc.stop()
    assert np.bincount(found.images.reshape(-1)).nonzero()[0].tolist() == [51, 255]


@pytest.mark.parametrize("cut", [1, 2, 30, 3000])
@pytest.mark.parametrize("packed", [True, False])
def test_a_file_that_is_cut_short_is_refused(raw, tmp_path, packed, cut):
    text = json.dumps(leaf(handwriting(), 0)).encode()
    (tmp_path / "train.json").write_bytes(gzip.compress(text)[:-cut] if packed else text[:-cut])
    with pytest.raises(UserError, match=r"train.json: is (no JSON text, or )?cut short"):
        raw(path=tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"user_data": 3}', "[" * 100_000, '{"a":' * 100_000, "{} {}", '{"user_data": {}}', "\udcff"],
)
def test_text_that_is_not_leafs_is_refused(raw, tmp_path, text):
    (tmp_path / "train.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=f"{tmp_path}.*LEAF|{tmp_path}.*is no JSON text"):
        raw(path=tmp_path)


def test_long_files_are_refused_where_an_answer_is_wanted_in_seconds(raw, tmp_path, monkeypatch):
    write_leaf(tmp_path / "leaf", handwriting())
    monkeypatch.setattr("fedsim.data.reading.leaf.MOST_BYTES_IN_SECONDS", 1_000)
    with in_seconds(), pytest.raises(UserError, match=r"json\.gz: has 1 MB of JSON up to here, and at most 0 are"):
        raw(path=tmp_path / "leaf")
    assert len(raw(path=tmp_path / "leaf").y) == 18


def test_many_users_are_refused_where_an_answer_is_wanted_in_seconds(raw, tmp_path, monkeypatch):
    write_leaf(tmp_path / "leaf", handwriting())
    monkeypatch.setattr("fedsim.data.reading.leaf.MOST_USERS_IN_SECONDS", 1)
    with in_seconds(), pytest.raises(UserError, match=r"json\.gz: has 2 users, and at most 1 are"):
        raw(path=tmp_path / "leaf")


def test_a_folder_without_leafs_files_is_refused(raw, tmp_path):
    with pytest.raises(UserError, match="has no JSON files of LEAF; it must be a folder with train and test"):
        raw(path=tmp_path)
    (tmp_path / "all_data.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match="all_data.json: is it for training or for tests"):
        raw(path=tmp_path)


def test_what_is_nowhere_says_where_it_was_looked_for(streams, monkeypatch, tmp_path):
    monkeypatch.setenv("FEDSIM_DATA", str(tmp_path))
    with pytest.raises(UserError, match="no/femnist.npz: is neither beside the scenario nor in .*FEMNIST"):
        Femnist(path="no/femnist.npz").raw(Clients(2), streams(1))


def test_a_data_folder_that_is_none_is_named(streams, monkeypatch, tmp_path):
    monkeypatch.setenv("FEDSIM_DATA", str(tmp_path / "absent"))
    with pytest.raises(UserError, match=r"FEDSIM_DATA names .*absent, which is no folder; .*FEMNIST"):
        Femnist(path="no/femnist.npz").raw(Clients(2), streams(1))


@pytest.mark.parametrize("options", [{"path": 3}, {"path": "a", "ink": "grey"}, {"path": "a", "duplicates": True}])
def test_keys_outside_their_range_are_refused(options):
    with pytest.raises(ValidationError):
        Femnist.model_validate(options)


@pytest.fixture(scope="module")
def real(data_folder):
    return data_folder / "femnist"


@pytest.mark.data
def test_the_published_writers(real, streams):
    """Counts that the file's provenance states; the share of digits is that of NIST's forms f1500 to f4099."""
    made = Femnist(path=str(real / "femnist_writers.npz"), duplicates="keep").raw(Clients(368), streams(1))
    assert (len(made.y), len(made.owner_names)) == (60_757, 396)
    assert np.bincount(made.test).tolist() == [54_503, 6_254]
    assert made.classes == len(CHARACTERS) == len(np.unique(made.y)) == 62
    digits, upper, lower = ((made.y < 10).mean(), ((made.y >= 10) & (made.y < 36)).mean(), (made.y >= 36).mean())
    assert [round(100 * share, 1) for share in (digits, upper, lower)] == [70.7, 14.9, 14.4]
    sizes = np.bincount(made.owner)
    assert (sizes.min(), np.median(sizes), sizes.max()) == (3, 167, 356)
    assert [np.count_nonzero(sizes >= least) for least in (20, 50, 70, 100)] == [386, 377, 370, 360]


@pytest.mark.data
def test_the_copies_that_the_file_marks_are_those_that_are_found(real, streams):
    path = real / "femnist_writers.npz"
    marked = read_npz(path, {"is_dup": Wanted("u1", 1), "images": Wanted("u1", 3)}, what="FEMNIST")
    made = Femnist(path=str(path)).raw(Clients(368), streams(1))
    assert made.remarks == ("second copies, pixel for pixel, by the same writer, left out: 398",)
    assert np.array_equal(made.x[:, 0], marked["images"][marked["is_dup"] == 0])


@pytest.mark.data
def test_368_writers_are_368_clients(real, streams):
    data = Femnist(path=str(real / "femnist_writers.npz")).load(Clients(368), streams(1))
    assert data.clients == 368
    own = [len(ids) + len(tests) for ids, tests in zip(data.train_ids, data.client_test_ids, strict=True)]
    assert min(own) >= 69
    assert len(data.test_ids) == sum(map(len, data.client_test_ids))


@pytest.mark.data
def test_leafs_own_files_hold_the_same_images_as_the_compact_one(real, streams):
    """Five writers whose JSON files, byte by byte LEAF's, are there too."""
    compact = Femnist(path=str(real / "femnist_writers.npz")).raw(Clients(2), streams(1))
    leafs = Femnist(path=str(real / "leaf_json_fixture")).raw(Clients(2), streams(1))
    assert len(leafs.owner_names) == 5
    for number, name in enumerate(leafs.owner_names):
        found = {bytes(x) for x in leafs.x[leafs.owner == number]}
        assert found == {bytes(x) for x in compact.x[compact.owner == compact.owner_names.index(name)]}
        assert len(found) > 100


@pytest.mark.data
def test_writers_with_tests_only_can_be_unseen_ones(real, streams):
    made = Femnist(path=str(real / "femnist_partial_writers.npz"), duplicates="keep").raw(Clients(2), streams(1))
    assert (len(made.y), len(made.owner_names), np.median(np.bincount(made.owner))) == (9_259, 314, 32)
