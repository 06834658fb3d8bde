"""What the network relies on, of every registered radio: shares, times that increase, stories that do not change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Literal

import pytest
from radio_sites import BUDGET, GIVEN, shannon, site
from technologies import lte, lte_m, nr, redcap

from fedsim import registry
from fedsim.radio.fixed import Fixed
from fedsim.radio.nb_iot.radio import NbIot
from fedsim.radio.settings import RadioPath, RadioSettings, Rates, RatesOfMany
from fedsim.radio.shannon import Shannon
from fedsim.radio.trace import Trace

REDRAWN = {"sigma_db": 8.0, "redraw_every_s": 0.1, "correlation_s": 3.0}
ROWS = "time_s,device,uplink_bps,downlink_bps\n0,*,5,0\n0.1,*,0,7\n0.2,*,3,4\n0,cam-2,1,2\n"


def traced(folder: Path) -> Trace:
    path = folder / "rows.csv"
    path.write_text(ROWS, encoding="utf-8")
    return Trace(path=str(path), repeat_every_s=0.3)


RADIOS: dict[str, Callable[[Path], RadioSettings]] = {
    "fixed": lambda folder: Fixed(profile="nb_iot_nb1"),
    "lte": lambda folder: lte(snr={**BUDGET, "shadowing": REDRAWN}),
    "lte_m": lambda folder: lte_m(snr={**BUDGET, "shadowing": REDRAWN}),
    "nb_iot": lambda folder: NbIot(snr={**BUDGET, "shadowing": REDRAWN}),
    "nr": lambda folder: nr(snr={**BUDGET, "shadowing": REDRAWN}),
    "redcap": lambda folder: redcap(snr={**BUDGET, "shadowing": REDRAWN}),
    "shannon": lambda folder: shannon({**BUDGET, "shadowing": REDRAWN}),
    "trace": traced,
}
each_radio = pytest.mark.parametrize("name", RADIOS)


def test_every_radio_is_tried_here() -> None:
    assert set(RADIOS) == set(registry.names("radios"))


def test_every_source_of_ratios_is_tried_in_these_tests() -> None:
    assert {str(BUDGET["name"]), str(GIVEN["name"])} == set(registry.names("snrs"))


@each_radio
def test_rates_and_shares_are_possible(name: str, tmp_path: Path) -> None:
    radio = RADIOS[name](tmp_path)
    for rates in (radio.rates(site(500.0)), *(rates for _, rates in islice(radio.changes(site(500.0)), 200))):
        assert min(rates.uplink_bps, rates.downlink_bps) >= 0
        assert 0 < rates.uplink_share <= 1 and 0 < rates.downlink_share <= 1


@each_radio
def test_changes_come_later_and_later(name: str, tmp_path: Path) -> None:
    times_s = [time_s for time_s, _ in islice(RADIOS[name](tmp_path).changes(site()), 5_000)]
    assert all(earlier_s < later_s < math.inf for earlier_s, later_s in pairwise([0.0, *times_s]))


@each_radio
def test_a_device_s_story_does_not_depend_on_who_asks_and_when(name: str, tmp_path: Path) -> None:
    radio, another = RADIOS[name](tmp_path), RADIOS[name](tmp_path)
    at_once = [radio.rates(site(900.0)), *islice(radio.changes(site(900.0)), 20)]
    here, there = another.changes(site(900.0)), another.changes(site(300.0, index=1))
    in_turns = [(next(here, None), next(there, None)) for _ in range(20)]
    assert [another.rates(site(900.0)), *(change for change, _ in in_turns if change)] == at_once


@each_radio
def test_a_covered_device_is_not_said_to_be_without_coverage(name: str, tmp_path: Path) -> None:
    assert RADIOS[name](tmp_path).why_no_coverage(site()) is None


@each_radio
def test_of_many_each_has_the_story_that_is_its_own(name: str, tmp_path: Path) -> None:
    radio, sites = RADIOS[name](tmp_path), [site(300.0 + index, index=index, station=index % 2) for index in range(5)]
    assert list(radio.rates_of(sites)) == list(map(radio.rates, sites))
    together = radio.changes_together(sites)
    if together is not None:
        rows = [(time_s, list(rates)) for time_s, rates in islice(together, 20)]
        for index, one in enumerate(sites):
            assert [(time_s, rates[index]) for time_s, rates in rows] == list(islice(radio.changes(one), 20))


def test_rates_of_single_devices_are_the_same_together() -> None:
    alone = [Rates(1.0, 2.0, coverage_class=0), Rates(3.0, 4.0, uplink_share=0.5)]
    assert list(RatesOfMany.of(alone)) == alone and RatesOfMany.of(alone[1:]).coverage_class is None


def test_a_radio_of_ones_own_that_is_for_single_devices_is_asked_for_each() -> None:
    class Halved(Shannon):
        name: Literal["halved"] = "halved"  # type: ignore[assignment]

        def rates(self, site: RadioPath) -> Rates:
            rates = super().rates(site)
            return Rates(rates.uplink_bps / 2, rates.downlink_bps / 2)

    class Steady(Shannon):
        name: Literal["steady"] = "steady"  # type: ignore[assignment]

        def changes(self, site: RadioPath) -> Iterator[tuple[float, Rates]]:
            return iter(())

    class Same(Shannon):
        pass

    keys = shannon({**BUDGET, "shadowing": REDRAWN}).model_dump(exclude={"name"})
    radio, halved, steady = (kind.model_validate(keys) for kind in (Shannon, Halved, Steady))
    sites = [site(300.0 + index, index=index) for index in range(3)]
    assert [rates.uplink_bps for rates in halved.rates_of(sites)] == [
        rates.uplink_bps / 2 for rates in radio.rates_of(sites)
    ]
    assert halved.changes_together(sites) is not None
    assert steady.changes_together(sites) is None
    assert list(steady.rates_of(sites)) == list(radio.rates_of(sites))
    assert "rates_of" not in vars(Same) and "changes_together" not in vars(Same)  # nor is Same asked for each
    assert Same.model_fields["name"].default == "Same"
