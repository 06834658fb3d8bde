"""Commands that are to answer in seconds refuse, by its number, what takes longer to read; a run reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedsim import quick
from fedsim.data import cache
from fedsim.data.arrays import Arrays
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine
from fedsim.data.glyphs import dataset as glyphs
from fedsim.data.glyphs.dataset import Glyphs
from fedsim.data.later import Later
from fedsim.data.pile import Clients, Pile
from fedsim.errors import UserError
from fedsim.quick import in_seconds

EQUAL = {"images_per_device": 10.0, "images_spread": 0.0}
WAY_OUT = "give --all-data to look at everything, or start the run, which always does"


def test_a_reader_is_told_off_only_where_an_answer_is_wanted_in_seconds() -> None:
    quick.check_samples(quick.MOST_SAMPLES + 1, "here")
    with in_seconds():
        quick.check_samples(quick.MOST_SAMPLES, "here")
        with pytest.raises(UserError, match=rf"^here: has 1,500,001 samples, and at most 1,500,000 .*; {WAY_OUT}$"):
            quick.check_samples(quick.MOST_SAMPLES + 1, "here")
        with in_seconds(answer=False):
            quick.check_samples(quick.MOST_SAMPLES + 1, "here")
    quick.check_bytes(quick.MOST_BYTES + 1e6, "here")
    with in_seconds(), pytest.raises(UserError, match="has 201 MB of samples, and at most 200 are looked at"):
        quick.check_bytes(quick.MOST_BYTES + 1e6, "here")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    np.savez(tmp_path / "plant.npz", x=np.zeros((50, 40), np.uint8), y=np.arange(50) % 2)
    return tmp_path / "plant.npz"


@pytest.mark.parametrize(
    ("limit", "most", "refused"),
    [
        ("MOST_BYTES", 2_000, "plant.npz: has 0 MB of samples, and at most 0 are"),
        ("MOST_SAMPLES", 49, "plant.npz: has 50 samples, and at most 49 are"),
    ],
)
def test_arrays_are_refused_by_what_they_declare(
    archive: Path, limit: str, most: int, refused: str, monkeypatch: pytest.MonkeyPatch, streams
) -> None:
    monkeypatch.setattr(quick, limit, most)
    data = Arrays(path=str(archive))
    assert data.load(Clients(2), streams(1)).clients == 2
    with in_seconds(), pytest.raises(UserError, match=refused):
        data.load(Clients(2), streams(1))


def test_what_the_cache_keeps_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    def made() -> Pile:
        return Pile(x=np.zeros((9, 100), np.uint8), y=np.zeros(9, np.int64), classes=2, sample_bytes=1.0)

    def kept() -> Pile:
        return cache.cached("few", 1, [archive], {}, made)

    kept()
    monkeypatch.setattr(cache, "_read", lambda _: pytest.fail("it was read"))
    monkeypatch.setattr(quick, "MOST_BYTES", 900)
    with in_seconds(), pytest.raises(UserError, match=r"plant\.npz: has 0 MB of samples"):
        kept()


def test_glyphs_are_refused_by_their_number_before_any_is_drawn(monkeypatch: pytest.MonkeyPatch, streams) -> None:
    monkeypatch.setattr(quick, "MOST_SAMPLES", 39)
    assert len(Glyphs(**EQUAL).pile(Clients(4), streams(1)).y) == 40
    with in_seconds(), pytest.raises(UserError, match="glyphs of 4 cameras: has 40 samples, and at most 39 are"):
        Glyphs(**EQUAL).pile(Clients(4), streams(1))


def test_a_hundred_thousand_cameras_are_not_too_many() -> None:
    """The least that each of them has: ten images."""
    assert quick.MOST_SAMPLES >= 100_000 * 10


def test_glyphs_that_must_be_drawn_are_refused_where_they_are_many(monkeypatch: pytest.MonkeyPatch, streams) -> None:
    monkeypatch.setattr(glyphs, "MOST_DRAWN", 39)
    turned = Glyphs.model_validate({**EQUAL, "feature_skew": {"name": "rotation", "degrees": [90]}})
    assert turned.load(Clients(4), streams(1)).clients == 4
    with in_seconds(), pytest.raises(UserError, match="glyphs: has 40 images to draw, and at most 39 are looked at"):
        turned.load(Clients(4), streams(1))
    with in_seconds():
        assert Glyphs(**EQUAL).load(Clients(4), streams(1)).clients == 4  # nobody looks at them


def test_some_samples_are_drawn_alone_and_are_the_same(streams) -> None:
    some, whole = (Glyphs(**EQUAL).load(Clients(4), streams(1)) for _ in range(2))
    ids = np.array([31, 2, 9, 10, 2])
    assert "x" not in vars(some)
    rows = some.rows(ids)
    assert "x" not in vars(some)
    assert whole.x is not None
    assert np.array_equal(rows, whole.x[ids])
    assert np.array_equal(whole.rows(ids), rows)
    assert np.array_equal(some.samples(ids), Affine(1 / 255).decode(rows))
    assert some.digest == whole.digest


def test_samples_that_are_made_later_must_be_what_was_promised() -> None:
    made = Later((3, 2), np.dtype(np.uint8), lambda: np.zeros((3, 3), np.uint8), lambda ids: np.zeros((len(ids), 2)))
    data = FederatedDataset(
        name="late",
        classes=2,
        sample_shape=(2,),
        sample_bytes=1.0,
        client_samples=np.array([2]),
        stored=made,
        y=np.zeros(3, np.int64),
        train_ids=(np.array([0, 1]),),
        client_test_ids=(np.array([], np.int64),),
    )
    with pytest.raises(ValueError, match=r"uint8 \(3, 3\) was made, not uint8 \(3, 2\)"):
        _ = data.x
