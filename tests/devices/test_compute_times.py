"""How long a device computes: arithmetic over speed, seconds per sample, or a law of chance with the mean asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from small_worlds import prepared, scenario, simulated

from fedsim.devices.compute import ComputeSettings
from fedsim.devices.distribution import Distribution
from fedsim.devices.flops import Flops
from fedsim.devices.per_sample import PerSample
from fedsim.devices.settings import DevicesSettings
from fedsim.errors import UserError
from fedsim.kernel.streams import Streams

STREAMS = Streams(1)
DRAWS = 8_000
SIGMAS = 4.0


def seconds(compute: ComputeSettings, samples: int = 1, *, device: int = 0, use: int = 0, flops: float = 0.0) -> float:
    return compute.seconds(
        samples, lambda: flops, STREAMS("device/compute", device), STREAMS("training/compute", device, use)
    )


def no_flops() -> float:
    raise AssertionError("the model's operations were asked for")


def test_flops_are_operations_over_speed() -> None:
    assert seconds(Flops(flops_per_s=5e8), 60, flops=1e6) == 0.12


def test_an_infinite_speed_takes_no_time() -> None:
    assert seconds(Flops(flops_per_s=math.inf), 60, flops=1e12) == 0.0


def test_seconds_per_sample_count_samples_whatever_the_model() -> None:
    assert PerSample(seconds_per_sample=0.25).seconds(60, no_flops, STREAMS("a"), STREAMS("b")) == 15.0


LAWS: dict[str, dict[str, Any]] = {
    "lognormal": {"law": "lognormal", "variation": 0.5},
    "uniform": {"law": "uniform", "variation": 0.5},
    "exponential": {"law": "exponential"},
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("per", ["device", "training"])
def test_a_law_has_the_mean_and_the_variation_that_were_asked_for(law: dict[str, Any], per: str) -> None:
    # 8,000 draws, each from a stream of its own. The standard errors are the sample's own. A mean that is 10 % off lies
    # 8 of them away or more, and a variation that is 10 % off (a square that is 21 % off) more than 4.
    compute = Distribution(mean_seconds_per_sample=0.2, per=per, **law)
    draws = np.array([seconds(compute, **{"device" if per == "device" else "use": i}) for i in range(DRAWS)])
    variation = law.get("variation", 1.0)

    mean_error = np.std(draws, ddof=1) / math.sqrt(DRAWS)
    assert abs(draws.mean() - 0.2) < SIGMAS * mean_error
    assert 2 * SIGMAS * mean_error < 0.1 * 0.2

    squares = (draws / 0.2 - 1) ** 2
    square_error = np.std(squares, ddof=1) / math.sqrt(DRAWS)
    assert abs(squares.mean() - variation**2) < SIGMAS * square_error
    assert SIGMAS * square_error < 0.21 * variation**2


def cdf(law: str, variation: float, relative: np.ndarray) -> np.ndarray:
    """The law's distribution function, of the time over its mean."""
    if law == "exponential":
        return 1 - np.exp(-relative)
    if law == "uniform":
        half = math.sqrt(3) * variation
        return np.clip((relative - (1 - half)) / (2 * half), 0, 1)
    sigma = math.sqrt(math.log1p(variation**2))
    return np.array([0.5 * (1 + math.erf((math.log(x) + sigma**2 / 2) / (sigma * math.sqrt(2)))) for x in relative])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_law_has_its_own_shape(law: dict[str, Any]) -> None:
    # Kolmogorov and Smirnov with 8,000 draws: sqrt(n) D exceeds 2.2 with probability 2 exp(-2 * 2.2^2) = 1.2e-4; the
    # other two laws of the same variation lie twice as far away, at least.
    compute = Distribution(mean_seconds_per_sample=1.0, **law)
    draws = np.sort([seconds(compute, device=i) for i in range(DRAWS)])

    def distance(name: str) -> float:
        ranks = np.arange(DRAWS)
        values = cdf(name, law.get("variation", 1.0), draws)
        return math.sqrt(DRAWS) * max((values - ranks / DRAWS).max(), ((ranks + 1) / DRAWS - values).max())

    assert distance(law["law"]) < 2.2
    assert all(distance(other) > 2 * 2.2 for other in LAWS if other != law["law"])


def test_a_device_keeps_its_speed_and_a_training_draws_anew() -> None:
    for per in ("device", "training"):
        compute = Distribution(law="exponential", mean_seconds_per_sample=1.0, per=per)
        assert seconds(compute, device=3, use=2) == seconds(compute, device=3, use=2)
        assert seconds(compute, device=0) != seconds(compute, device=1)
        assert (seconds(compute, use=0) == seconds(compute, use=1)) is (per == "device")


computes = st.one_of(
    st.builds(Flops, flops_per_s=st.floats(1e3, 1e12)),
    st.builds(PerSample, seconds_per_sample=st.floats(0, 1e3)),
    st.builds(
        Distribution,
        law=st.just("lognormal"),
        mean_seconds_per_sample=st.floats(1e-6, 1e3),
        variation=st.floats(0, 5),
        per=st.sampled_from(["device", "training"]),
    ),
)


@given(compute=computes, samples=st.integers(0, 10**6), device=st.integers(0, 10**5), use=st.integers(0, 10**5))
def test_time_is_proportional_to_samples_and_never_negative(
    compute: ComputeSettings, samples: int, device: int, use: int
) -> None:
    one = seconds(compute, 1, device=device, use=use, flops=1e6)
    assert one >= 0
    assert seconds(compute, samples, device=device, use=use, flops=1e6) == pytest.approx(samples * one, rel=1e-12)


@given(
    factor=st.sampled_from([0.25, 0.5, 2.0, 4.0]), law=st.sampled_from(list(LAWS.values())), device=st.integers(0, 99)
)
def test_a_mean_twice_as_long_makes_every_draw_twice_as_long(factor: float, law: dict[str, Any], device: int) -> None:
    once, again = (Distribution(mean_seconds_per_sample=0.5 * times, **law) for times in (1.0, factor))
    assert seconds(again, 7, device=device) == factor * seconds(once, 7, device=device)


def test_without_variation_a_law_is_a_constant() -> None:
    for law in ("lognormal", "uniform"):
        compute = Distribution(law=law, mean_seconds_per_sample=0.5, variation=0.0)
        assert seconds(compute, 10) == 5.0


def test_a_uniform_law_is_never_negative() -> None:
    compute = Distribution(law="uniform", mean_seconds_per_sample=1.0, variation=1 / math.sqrt(3))
    assert min(seconds(compute, device=i) for i in range(4_000)) >= 0


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"law": "lognormal"}, "a lognormal law needs variation"),
        ({"law": "uniform"}, "a uniform law needs variation"),
        ({"law": "exponential", "variation": 1.0}, r"variation=1.0 must be left out: an exponential law's is always 1"),
        ({"law": "uniform", "variation": 0.6}, r"variation=0.6 of a uniform law must be at most 1/sqrt\(3\) = 0.577"),
        ({"law": "lognormal", "variation": -0.1}, "greater than or equal to 0"),
        ({"law": "normal", "variation": 0.1}, "'lognormal', 'uniform' or 'exponential'"),
        ({"law": "exponential", "mean_seconds_per_sample": 0.0}, "greater than 0"),
        ({"law": "exponential", "per": "round"}, "'device' or 'training'"),
    ],
)
def test_a_law_that_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Distribution(**{"mean_seconds_per_sample": 1.0} | keys)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Flops(flops_per_s=0.0), "greater than 0"),
        (lambda: Flops(flops_per_s=math.nan), "not NaN"),
        (lambda: PerSample(seconds_per_sample=-1.0), "greater than or equal to 0"),
        (lambda: PerSample(seconds_per_sample=math.inf), "finite number"),
    ],
)
def test_a_speed_that_makes_no_sense_is_refused(make: Callable[[], ComputeSettings], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make()


# -- classes of devices ------------------------------------------------------------------------------------------------

SLOW, FAST = ({"compute": {"name": "per_sample", "seconds_per_sample": value}} for value in (1.0, 0.1))
TWO_CLASSES = {"slow": SLOW, "fast": FAST}


def work_s(changes: dict[str, Any]) -> list[float]:
    """Seconds of work of each client."""
    work = simulated(changes).trace.work.array()
    work = work[work["client"].argsort()]
    return (work["end_s"] - work["start_s"]).tolist()


def test_a_single_class_is_the_default() -> None:
    assert work_s({"devices.classes": {"slow": SLOW}}) == [10.0, 10.0]


def test_the_topology_names_a_sensors_class_and_the_default_holds_for_the_rest() -> None:
    nodes = {
        "cloud": {"kind": "cloud"},
        "bs": {"kind": "base_station"},
        "plain": {"kind": "sensor", "attach": "bs"},
        "named": {"kind": "sensor", "attach": "bs", "device": "fast"},
    }
    topology = {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "bs"]}]}
    changes = {"topology": topology, "devices": {"classes": TWO_CLASSES, "default": "slow"}}
    assert work_s(changes) == pytest.approx([10.0, 1.0])


def test_passes_over_the_data_take_their_time() -> None:
    assert work_s({"devices.classes": {"slow": SLOW}, "training.epochs": 3}) == [30.0, 30.0]


def test_flops_come_from_the_model() -> None:
    changes = {
        "devices.classes": {"cpu": {"compute": {"name": "flops", "flops_per_s": 1e6}}},
        "model.training_flops_per_sample": 2e5,
    }
    assert work_s(changes) == [10 * 2e5 / 1e6] * 2


@pytest.mark.parametrize("per", ["device", "training"])
def test_chance_differs_between_devices_and_if_asked_between_trainings(per: str) -> None:
    compute = {"name": "distribution", "law": "exponential", "mean_seconds_per_sample": 0.5, "per": per}
    work = simulated({"devices.classes": {"any": {"compute": compute}}, "stop.rounds": 3}).trace.work.array()
    times_s = {(row["client"], row["start_s"]): round(row["end_s"] - row["start_s"], 9) for row in work}
    assert len(times_s) == 6
    assert len(set(times_s.values())) == (2 if per == "device" else 6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"devices.classes": {}}, "devices.classes needs at least one class"),
        (
            {"devices.classes": TWO_CLASSES, "devices.default": "fats"},
            "default='fats' is no device class; did you mean 'fast'",
        ),
    ],
)
def test_a_default_that_does_not_exist_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        scenario(changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"devices.classes": TWO_CLASSES},
            "sensor 'sensor-1' has no device class; .* set devices.default to one of: slow, fast",
        ),
        (
            {"devices.classes": TWO_CLASSES, "topology.device": "solw"},
            "sensor 'sensor-1' is of device class 'solw', which devices.classes does not have; did you mean 'slow'",
        ),
        (
            {"devices.classes": {"cpu": {"compute": {"name": "flops", "flops_per_s": 1e6}}}},
            "model 'declared' does not state them; set model.training_flops_per_sample",
        ),
    ],
)
def test_a_device_that_cannot_compute_is_refused_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        prepared(changes)


def test_the_default_class_is_known_when_it_is_obvious() -> None:
    assert DevicesSettings.model_validate({"classes": {"slow": SLOW}}).default_class == "slow"
    assert DevicesSettings.model_validate({"classes": TWO_CLASSES}).default_class is None
    assert DevicesSettings.model_validate({"classes": TWO_CLASSES, "default": "fast"}).default_class == "fast"
