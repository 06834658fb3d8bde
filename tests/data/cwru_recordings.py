"""A few short recordings in the form of the Bearing Data Center's, whose values tell where they stand."""

from __future__ import annotations

import numpy as np

from fedsim.data.cwru import Cwru
from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.data.reading.cwru import FILES

__all__ = ["RECORDINGS", "arrays", "counts", "raw"]

RECORDINGS = (  # number, samples; 105 and 106 are of the inner race, 118 of the ball, 3001 of 28 mil
    (97, 500),
    (105, 410),
    (106, 400),
    (118, 430),
    (144, 400),
    (3001, 400),
)


def counts(number: int, samples: int) -> np.ndarray:
    """What the converter gave: each value tells its recording and its place."""
    return (number % 50 * 600 + np.arange(samples)).astype(np.int16)


def arrays() -> dict[str, np.ndarray]:
    facts = [FILES[number] for number, _ in RECORDINGS]
    clips = [counts(*recording) for recording in RECORDINGS]
    fan = [clip if number < 3000 else clip[:0] for (number, _), clip in zip(RECORDINGS, clips, strict=True)]
    return {
        "mat_file": np.array([f"12k_{number}.mat" for number, _ in RECORDINGS]),
        "fault": np.array([fault for fault, _, _ in facts]),
        "size_mil": np.array([size for _, size, _ in facts], np.int16),
        "load_hp": np.array([load for _, _, load in facts], np.int8),
        "de": np.concatenate(clips),
        "de_off": np.cumsum([0, *map(len, clips)]),
        "de_scale": np.full(len(clips), 2.0**-12),
        "fe": np.concatenate(fan),
        "fe_off": np.cumsum([0, *map(len, fan)]),
        "fe_scale": np.array([2.0**-12 if len(clip) else np.nan for clip in fan]),
    }


def raw(path, **options) -> RawDataset:
    options = {"window": 32, "stride": 32, "normalise": "none", **options}
    return Cwru(path=str(path), **options).raw(Clients(2), np.random.default_rng)
