"""Every published number of docs/validation.csv comes out within its tolerance."""

from __future__ import annotations

import pytest
from writers.validation import WORKED_OUT, Point, points


@pytest.mark.parametrize("point", points(), ids=[f"{point.id}: {point.what} ({point.source})" for point in points()])
def test_a_published_number_comes_out(point: Point) -> None:
    assert point.simulated == pytest.approx(point.published, rel=point.tolerance_percent / 100), point.source


def test_every_point_is_worked_out_once() -> None:
    identities = [point.id for point in points()]
    assert sorted(identities) == sorted(WORKED_OUT)
    assert {point.kind for point in points()} == {"predicted", "calibrated", "identity"}
