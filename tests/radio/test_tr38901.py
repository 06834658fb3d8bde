"""The models of TR 38.901: losses worked by hand, lines of sight, and the ways for which each of them is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from radio_sites import BUDGET, site

from fedsim import registry
from fedsim.errors import Misfit, UserError
from fedsim.radio.propagation.path_loss import Ways
from fedsim.radio.propagation.rural import RuralMacro
from fedsim.radio.propagation.standard import StandardPathLoss
from fedsim.radio.settings import ANYWHERE, Place, RadioPath, UpDown
from fedsim.radio.snr import FromLinkBudget

NAMES = ("uma", "umi", "rma", "inh_open", "inh_mixed", "inf_sl", "inf_dl", "inf_sh", "inf_dh", "inf_hh")
VIEWS = {"los": "always", "nlos": "never"}
DEVICES = 5_000
BOTH_1_MHZ = UpDown(1e6, 1e6)
SIGMAS = 4.0


def model(name: str, view: str | None = None, **keys: Any) -> StandardPathLoss:
    found: StandardPathLoss = registry.load("path_losses", name)(**({"in_view": VIEWS[view]} if view else {}), **keys)
    return found


def states(name: str) -> list[str]:
    return ["los"] if name == "inf_hh" else ["los", "nlos"]


EACH_STATE = [(name, view) for name in NAMES for view in states(name)]


def there(ground_m: float, place: Place = ANYWHERE, **keys: Any) -> RadioPath:
    return replace(site(ground_m, **keys), place=place)


def path_losses_db(source: FromLinkBudget, paths: Sequence[RadioPath]) -> list[float]:
    return [uplink.path_loss_db for uplink, _ in source.powers(paths, BOTH_1_MHZ)]


def budget(path_loss: dict[str, Any], **keys: Any) -> FromLinkBudget:
    return FromLinkBudget(**{**BUDGET, "carrier_hz": 3.5e9, "path_loss": path_loss, **keys})


# Distances on the ground. lg 3.5 = 0.54407, lg 0.9 = -0.04576, lg 3.7 = 0.56820.
BY_HAND = [
    ("uma", "los", 100, 3.5, 83.138),  # lg sqrt(100^2 + 23.5^2) = 2.01167: 28 + 44.257 + 10.881
    ("uma", "nlos", 100, 3.5, 103.037),  # 13.54 + 78.616 + 10.881, the device being 1.5 m high
    ("uma", "los", 1000, 3.5, 109.412),  # d_BP = 4 x 24 x 0.5 x 3.5e9 / 3e8 = 560 m: 28 + 120.005 + 10.881 - 49.474
    ("uma", "nlos", 1000, 3.5, 141.666),  # 13.54 + 117.245 + 10.881
    ("umi", "los", 100, 3.5, 85.314),  # lg sqrt(100^2 + 8.5^2) = 2.00156: 32.4 + 42.033 + 10.881
    ("umi", "nlos", 100, 3.5, 104.644),  # 22.4 + 70.655 + 11.589
    ("umi", "los", 500, 3.5, 107.114),  # d_BP = 4 x 9 x 0.5 x 3.5e9 / 3e8 = 210 m: 32.4 + 107.961 + 10.881 - 44.128
    ("umi", "nlos", 500, 3.5, 129.265),  # 22.4 + 95.276 + 11.589
    ("rma", "los", 500, 0.9, 86.815),  # 31.526 + 20.478 lg 501.12 - 0.701 + 0.0014 x 501.12
    ("rma", "los", 3000, 0.9, 112.817),  # d_BP = 2 pi 35 x 1.5 x 0.9e9 / 3e8 = 989.6 m: 93.545 + 40 lg(3000.19 / 989.6)
    ("rma", "nlos", 500, 0.9, 107.026),  # 161.04 - 9.237 + 5.242 - 37.513 + 38.633 (lg d - 3) - 0.915 - 0.000
    ("rma", "nlos", 3000, 0.9, 137.052),
    ("inh_open", "los", 20, 3.5, 65.827),  # lg sqrt(20^2 + 2^2) = 1.30319: 32.4 + 22.545 + 10.881
    ("inh_mixed", "los", 20, 3.5, 65.827),
    ("inh_open", "nlos", 20, 3.5, 80.759),  # 17.3 + 49.912 + 13.547
    ("inh_mixed", "nlos", 20, 3.5, 80.759),
    ("inf_sl", "los", 100, 3.7, 85.636),  # 31.84 + 43 + 10.796; station and device are 1.5 m high
    ("inf_dh", "los", 100, 3.7, 85.655),  # lg sqrt(100^2 + 6.5^2) = 2.00091
    ("inf_hh", "los", 100, 3.7, 85.655),
]


@pytest.mark.parametrize(("name", "view", "ground_m", "ghz", "loss_db"), BY_HAND)
def test_a_loss_worked_by_hand(name: str, view: str, ground_m: float, ghz: float, loss_db: float) -> None:
    """Table 7.4.1-1, between antennas as high as the standard's scenario has them."""
    chosen = model(name, view)
    ways = Ways.of(ground_m, ghz * 1e9, chosen.usual_heights_m)
    assert chosen.losses_db(ways)[0] == pytest.approx(loss_db, abs=0.001)


@pytest.mark.parametrize(
    ("name", "loss_db"), [("inf_sl", 95.364), ("inf_dl", 101.364), ("inf_sh", 89.764), ("inf_dh", 88.794)]
)
def test_a_hall_without_line_of_sight(name: str, loss_db: float) -> None:
    """100 m in space at 3.7 GHz, 20 lg f = 11.364: 33 + 51, 18.6 + 71.4, 32.4 + 46 and 33.63 + 43.8 dB."""
    low = name in ("inf_sl", "inf_dl")
    ground_m = 100.0 if low else math.sqrt(100**2 - 6.5**2)
    ways = Ways.of(ground_m, 3.7e9, (1.5, 1.5) if low else (8.0, 1.5))
    assert model(name, "nlos").losses_db(ways)[0] == pytest.approx(loss_db, abs=0.001)


def test_the_country_is_as_another_tool_has_it() -> None:
    """The example of MathWorks' nrPathLoss: 3.5 GHz, houses of 7 m, streets of 25 m, 1 km east and 1 km north."""
    country = RuralMacro(building_height_m=7.0, street_width_m=25.0, in_view="always")
    assert country.losses_db(Ways.of(math.hypot(1e3, 1e3), 3.5e9, (30.0, 1.5)))[0] == pytest.approx(110.1615, abs=5e-5)


def test_tall_buildings_have_no_more_than_the_standard_s_most() -> None:
    """Of 50 m: 31.526 + (20 + 10) lg 501.12 - 14.77 + 0.002 lg 50 x 501.12, for 0.03 x 50^1.72 is 25."""
    country = RuralMacro(building_height_m=50.0, in_view="always")
    assert country.model_db(500.0, 0.9e9) == country.over_db(500.0, 0.9e9) == pytest.approx(99.458, abs=0.001)


@pytest.mark.parametrize(("name", "break_m"), [("uma", 560.0), ("umi", 210.0)])
def test_nothing_jumps_at_the_breakpoint_of_a_town(name: str, break_m: float) -> None:
    ways = Ways.of([break_m - 1e-6, break_m + 1e-6], 3.5e9, model(name).usual_heights_m)
    before_db, after_db = model(name, "los").losses_db(ways)
    assert after_db == pytest.approx(before_db, abs=1e-6)
    steeper = model(name, "los").losses_db(Ways.of([10 * break_m / 3, 20 * break_m / 3], 3.5e9, (25.0, 1.5)))
    assert steeper[1] - steeper[0] == pytest.approx(40 * math.log10(2), abs=0.05)


def test_the_country_steps_up_by_as_little_as_the_standard_says() -> None:
    """d_BP is on the ground and d in space: 40 lg of 990.17 / 989.6 is 0.01 dB, less what the near law has grown."""
    break_m = 2 * math.pi * 35 * 1.5 * (0.9e9 / 3e8)
    ways = Ways.of([break_m - 1e-6, break_m, break_m + 1e-6], 0.9e9, (35.0, 1.5))
    before_db, at_db, after_db = model("rma", "los").losses_db(ways)
    assert 0.001 < after_db - before_db < 0.01 and at_db == pytest.approx(before_db, abs=1e-6)
    assert model("rma", "los").own_shadows(ways).sigma_db.tolist() == [4.0, 4.0, 6.0]


@pytest.mark.parametrize("ghz", [0.6, 3.5, 28.0])
@pytest.mark.parametrize(("name", "view"), EACH_STATE)
def test_farther_is_never_less_lost(name: str, view: str, ghz: float) -> None:
    chosen = model(name, view)
    grid_m = np.geomspace(chosen.range.nearest_m, 0.99 * chosen.range.farthest_nlos_m, 2_000)
    losses_db = chosen.losses_db(Ways.of(grid_m, ghz * 1e9, chosen.usual_heights_m))
    assert (np.diff(losses_db) >= 0).all()
    assert losses_db[-1] - losses_db[0] > 20


@pytest.mark.parametrize("name", [name for name in NAMES if name != "inf_hh"])
def test_without_line_of_sight_no_less_is_lost(name: str) -> None:
    grid_m = np.geomspace(10, 140, 500)
    for ghz in (0.5, 3.5, 29.0):
        ways = Ways.of(grid_m, ghz * 1e9, model(name).usual_heights_m)
        los_db, nlos_db = (model(name, view).losses_db(ways) for view in ("los", "nlos"))
        assert (nlos_db >= los_db).all()
    assert model("inh_open", "nlos").over_db(1.0, 3.5e9) == model("inh_open", "los").over_db(1.0, 3.5e9)


def test_dense_clutter_is_never_lighter_than_sparse_clutter() -> None:
    ways = Ways.of(np.geomspace(1, 600, 500), 3.5e9, (1.5, 1.5))
    sparse_db, dense_db = (model(name, "nlos").losses_db(ways) for name in ("inf_sl", "inf_dl"))
    assert (dense_db >= sparse_db).all()
    assert dense_db[0] == sparse_db[0]  # 18.6 dB at 1 m would be less


CHANCES = [
    ("uma", 15.0, {}, 1.0),
    ("uma", 100.0, {}, 0.3477),  # 0.18 + 0.82 exp(-100 / 63)
    ("uma", 100.0, {"height_m": 22.5}, 0.5543),  # times 1 + 0.95^1.5 x 1.25 exp(-100 / 150)
    ("uma", 100.0, {"indoor_m": 40.0}, 0.5701),  # 60 m out of doors: 0.3 + 0.7 exp(-60 / 63)
    ("umi", 100.0, {}, 0.2310),  # 0.18 + 0.82 exp(-100 / 36)
    ("rma", 500.0, {}, 0.6126),  # exp(-490 / 1000)
    ("inh_open", 4.0, {}, 1.0),
    ("inh_open", 30.0, {}, 0.7025),  # exp(-25 / 70.8)
    ("inh_open", 100.0, {}, 0.4244),  # 0.54 exp(-51 / 211.7)
    ("inh_mixed", 6.0, {}, 0.3601),  # exp(-4.8 / 4.7)
    ("inh_mixed", 10.0, {}, 0.2874),  # 0.32 exp(-3.5 / 32.6)
    ("inf_sl", 50.0, {}, 0.3277),  # k = 10 / -ln 0.8 = 44.81 m
    ("inf_dl", 3.0, {}, 0.2530),  # k = 2 / -ln 0.4 = 2.183 m
    ("inf_sh", 100.0, {}, 0.8423),  # k = 44.81 x 6.5 / 0.5 = 582.6 m
    ("inf_dh", 3.0, {}, 0.3862),  # k = 2.183 x 6.5 / 4.5 = 3.153 m
    ("inf_hh", 300.0, {}, 1.0),
]


@pytest.mark.parametrize(("name", "ground_m", "place", "chance"), CHANCES)
def test_as_many_have_line_of_sight_as_the_standard_says(
    name: str, ground_m: float, place: dict[str, float], chance: float
) -> None:
    """Table 7.4.2-1. One standard error of a share of 5,000 is at most 0.007; 4 of them are the limit."""
    devices = [there(ground_m, Place(**place), index=index) for index in range(DEVICES)]
    seen_db, *_ = path_losses_db(budget({"name": name, "in_view": "always"}), devices[:1])
    share = np.mean(np.array(path_losses_db(budget({"name": name}), devices)) == seen_db)
    assert share == pytest.approx(chance, abs=SIGMAS * math.sqrt(chance * (1 - chance) / DEVICES) + 1e-4)


def test_chances_at_the_edges_of_their_ranges() -> None:
    """UMa at a height of 18 m, (5 / 10)^1.5 = 0.35355: 0.08955 x (1 + 0.35355 x 1.25 x 2.5^3 exp(-250 / 150)) at last.

    Open offices, half a metre beyond 49 m: 0.54 exp(-0.5 / 211.7). Mixed ones have 0.32 from 6.5 m on.
    """
    high = Ways.of([18.0, 18.5, 250.0], 3.5e9, (25.0, 18.0))
    assert model("uma").view_chances(high) == pytest.approx([1.0, 0.99558, 0.20633], abs=1e-5)
    assert model("inh_open").view_chances(Ways.of(49.5, 3.5e9)) == pytest.approx(0.53873, abs=1e-5)
    assert model("inh_mixed").view_chances(Ways.of(6.5, 3.5e9)) == 0.32
    assert model("inh_open").view_chances(Ways.of(49.0, 3.5e9)) == math.exp(-44 / 70.8)  # "d <= 49 m"; 0.54 beyond
    assert model("uma").sees(Ways.of(5e3, 3.5e9)).all()  # unless lots are drawn


def test_line_of_sight_is_drawn_once_for_each_device_and_mast() -> None:
    """UMa at 100 m: half of the devices see one of two masts and not the other. Sectors of one mast are seen alike."""
    source = budget({"name": "uma"})
    pairs = [there(100.0, index=index, station=station) for index in range(500) for station in (0, 1)]
    losses_db = np.array(path_losses_db(source, pairs)).reshape(500, 2)
    one, other = (losses_db == losses_db.min()).T
    both = 0.3477**2
    assert np.mean(one & other) == pytest.approx(both, abs=SIGMAS * math.sqrt(both * (1 - both) / 500))
    sectors = [replace(path, station=1, mast=0) for path in pairs[::2]]
    assert path_losses_db(source, sectors) == losses_db[:, 0].tolist()
    assert path_losses_db(source, pairs[9:4:-1]) == losses_db.ravel()[9:4:-1].tolist()  # whoever else is asked for
    assert [source.power(path, BOTH_1_MHZ).uplink.path_loss_db for path in pairs[:9]] == losses_db.ravel()[:9].tolist()
    assert (
        path_losses_db(source, [there(100.0, index=index, seed=2) for index in range(500)]) != losses_db[:, 0].tolist()
    )


@pytest.mark.parametrize("view", ["los", "nlos"])
def test_the_standard_says_how_deep_and_how_wide_shadows_are(view: str) -> None:
    """Tables 7.4.1-1 and 7.5-6, before and beyond the breakpoint of RMa at 990 m, and through walls."""
    deep = {"uma": (4, 6), "umi": (4, 7.82), "rma": (4, 8), "inh_open": (3, 8.03), "inh_mixed": (3, 8.03)}
    deep |= {
        "inf_sl": (4.3, 5.7),
        "inf_dl": (4.3, 7.2),
        "inf_sh": (4.3, 5.9),
        "inf_dh": (4.3, 4.0),
        "inf_hh": (4.3, 4.3),
    }
    wide = {"uma": (37, 50), "umi": (10, 13), "rma": (37, 120), "inh_open": (10, 6), "inh_mixed": (10, 6)}
    for name in NAMES:
        if view not in states(name):
            continue
        chosen = model(name, view)
        own = chosen.own_shadows(Ways.of([20.0, 120.0], 0.9e9, chosen.usual_heights_m))
        assert set(own.sigma_db) == {deep[name][view == "nlos"]}
        assert set(own.correlation_m) == {wide.get(name, (10, 10))[view == "nlos"]}
        assert own.reference_m == pytest.approx(math.sqrt(math.prod(wide.get(name, (10, 10)))))
    for name, sigma_db, correlation_m in (("uma", 7, 7), ("umi", 7, 7), ("rma", 8, 120)):
        inside = model(name, view).own_shadows(Ways.of(100.0, 0.9e9, model(name).usual_heights_m, indoor_m=5.0))
        assert (inside.sigma_db[0], inside.correlation_m[0]) == (sigma_db, correlation_m)


def test_a_device_s_own_height_counts_before_that_of_the_budget_and_that_before_the_standard_s() -> None:
    """UMa without line of sight loses 0.6 dB less for each metre; the distance in space hardly changes at 2 km."""

    def loss_db(place: Place, **heights_m: float) -> float:
        source = budget({"name": "uma", "in_view": "never"}, **heights_m)
        return path_losses_db(source, [there(2_000.0, place)])[0]

    usual_db = loss_db(Place())
    assert loss_db(Place(), device_height_m=1.5) == loss_db(Place(), station_height_m=25.0) == usual_db
    assert loss_db(Place(), device_height_m=11.5) == pytest.approx(usual_db - 6, abs=0.01)
    assert loss_db(Place(height_m=11.5), device_height_m=3.0) == loss_db(Place(), device_height_m=11.5)
    assert loss_db(Place(height_m=11.5)) == loss_db(Place(), device_height_m=11.5)
    assert loss_db(Place(), station_height_m=500.0) > usual_db + 0.3  # 2,056 m in space


def test_nearer_devices_may_count_as_being_at_the_minimum_distance_on_the_ground() -> None:
    town = model("uma", "los", min_distance_m=10.0)
    near_db = town.losses_db(Ways.of([0.0, 3.0, 10.0, 12.0], 3.5e9, (25.0, 1.5)))
    assert near_db[0] == near_db[1] == near_db[2] < near_db[3]
    lots = Ways.of([0.0, 3.0], 3.5e9, (25.0, 1.5), lots=0.999)
    assert model("uma", min_distance_m=100.0).sees(lots).tolist() == [False, False]


@pytest.mark.parametrize(
    ("path_loss", "ground_m", "place", "message"),
    [
        ({"name": "uma"}, 9.9, {}, "uma holds from 10 m on, and the distance is 9.9 m; move one of the two, or let"),
        ({"name": "umi"}, 5_001.0, {}, "umi holds up to 5000 m, and the distance is 5001 m; move one of the two, or"),
        (
            {"name": "rma", "in_view": "never"},
            5_001.0,
            {},
            "rma holds up to 5000 m without line of sight, and the distance is 5001 m; move one",
        ),
        ({"name": "rma", "in_view": "always"}, 10_001.0, {}, "rma holds up to 10000 m, and the distance is 10001 m"),
        ({"name": "inh_mixed"}, 151.0, {}, "inh_mixed holds up to 150 m, and the distance is 151.01 m"),
        ({"name": "inh_open"}, 200.0, {}, "inh_open holds up to 150 m, and the distance is 200.01 m"),
        ({"name": "inf_sl"}, 0.5, {}, "inf_sl holds from 1 m on, and the distance is 0.5 m"),
        ({"name": "inf_dh"}, 601.0, {}, "inf_dh holds up to 600 m, and the distance is 601.04 m"),
        (
            {"name": "uma"},
            100.0,
            {"height_m": 0.5},
            "uma holds for devices from 1.5 to 22.5 m above the ground, and this one is at 0.5 m; change height_m of",
        ),
        ({"name": "rma"}, 100.0, {"height_m": 11.0}, "rma holds for devices from 1 to 10 m above the ground"),
        (
            {"name": "inf_sh"},
            100.0,
            {"height_m": 2.0},
            "inf_sh holds for devices below the top of the clutter, which is 2 m high, and this one is at 2 m; .*",
        ),
    ],
)
def test_a_way_that_the_standard_does_not_know_is_refused(
    path_loss: dict[str, Any], ground_m: float, place: dict[str, float], message: str
) -> None:
    sound = there(50.0)
    with pytest.raises(Misfit, match=f"sensor 'cam-9': {message}") as refused:
        budget(path_loss, shadowing={}).medians_db([sound, there(ground_m, Place(**place), sensor="cam-9")], BOTH_1_MHZ)
    assert refused.value.key == ("snr", "path_loss")


def test_a_base_station_within_the_clutter_is_none_above_it() -> None:
    message = "inf_dh holds for base stations above the clutter, which is 8 m high, and this one is at 8 m; .* inf_dl"
    with pytest.raises(Misfit, match=message):
        next(budget({"name": "inf_dh", "clutter_height_m": 8.0}, shadowing={}).losses_db([there(50.0)]))


@pytest.mark.parametrize(
    ("name", "height_m", "reach"), [("rma", 151.0, "from 10 to 150 m"), ("uma", 1.4, "from 1.5 m on")]
)
def test_a_base_station_is_as_high_as_the_standard_has_them(name: str, height_m: float, reach: str) -> None:
    message = f"{name} holds for base stations {reach} above the ground, and this one is at {height_m:g} m; change stat"
    with pytest.raises(Misfit, match=message):
        budget({"name": name}, station_height_m=height_m).median_db(there(50.0), BOTH_1_MHZ)


def test_what_holds_at_its_ends_is_accepted() -> None:
    assert model("rma", "los").losses_db(Ways.of([10.0, 10_000.0], 30e9, (150.0, 10.0))).shape == (2,)
    assert model("uma", "nlos").losses_db(Ways.of([10.0, 5_000.0], 100e9, (25.0, 22.5))).shape == (2,)
    assert model("inf_hh").losses_db(Ways.of([0.0, 599.9], 0.5e9, (8.0, 1.5))).shape == (2,)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"carrier_hz": 0.45e9},
            "carrier_hz=4.5e.08 does not fit: uma holds from 0.5 to 100 GHz, .* has 0.45 GHz; choose",
        ),
        (
            {"path_loss": {"name": "rma"}, "carrier_hz": 30.1e9},
            "rma holds from 0.5 to 30 GHz, and the carrier has 30.1",
        ),
        ({"path_loss": {"name": "inf_sl", "clutter_density": 0.4}}, "less than 0.4"),
        ({"path_loss": {"name": "inf_dl", "clutter_density": 0.39}}, "greater than or equal to 0.4"),
        ({"path_loss": {"name": "inf_hh", "in_view": "never"}}, "in_view=never does not go with inf_hh"),
        ({"path_loss": {"name": "rma", "street_width_m": 51.0}}, "less than or equal to 50"),
        ({"path_loss": {"name": "uma", "in_view": "sometimes"}}, "'drawn', 'always' or 'never'"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        budget(**{"path_loss": {"name": "uma"}, **keys})


def test_a_model_refuses_a_carrier_that_nobody_checked() -> None:
    with pytest.raises(UserError, match="uma holds from 0.5 to 100 GHz"):
        model("uma").over_db(100.0, 0.45e9)
