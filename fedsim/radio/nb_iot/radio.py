"""The radio `nb_iot`: from signal-to-noise ratios to the best row of the standard's tables, for each device.

In the downlink the row depends on the uplink too, and the other way round: an acknowledgement that has to be repeated
makes each cycle of the downlink longer, and a repeated control message each cycle of the uplink. Acknowledgements are
repeated as often as data would be over twelve tones, at most 32 times: on their one tone they have ten decibels in hand
there, and an error of theirs costs a whole block. Leaves out power control, and control messages of other devices.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray
from pydantic import Strict

from fedsim.errors import Misfit
from fedsim.radio.budget import LinkBudget, PowerBudget, noise_dbm
from fedsim.radio.nb_iot.coverage import THRESHOLDS_DB, coverage_classes
from fedsim.radio.nb_iot.cycles import Cycles, down_table, up_table
from fedsim.radio.nb_iot.lookup import looked_up
from fedsim.radio.nb_iot.random_access import RandomAccess
from fedsim.radio.nb_iot.tables import DOWN_REPETITIONS, needed_snr
from fedsim.radio.rate_table import RateTable
from fedsim.radio.settings import Duplex, RatesOfMany, UpDown
from fedsim.radio.snr import FromLinkBudget
from fedsim.radio.snr_radio import RatiosOfMany
from fedsim.radio.table_radio import TableRadio
from fedsim.settings import Fraction, Positive, Several, key_rule

__all__ = ["NbIot"]

CARRIER_HZ = 180e3
MOST_ANSWERS = 32
ANCHOR_FREE = 0.75
REFERENCE_DBM, REFERENCE_NOISE_FIGURE_DB = 43.0, 5.0
"""Of the link that TR 45.820 measures coverage by: where ratios are given, they are taken for that link's."""


PERIODS_MS = 4.0, 131_072.0
"""R_max x G, from the shortest on: TS 36.213 clause 16.6."""


class NbIot(TableRadio):
    """NB-IoT (Cat NB1, NB2): the best block, repetitions and tones of the standard for each signal-to-noise ratio."""

    name: Literal["nb_iot"] = "nb_iot"
    category: Literal["nb1", "nb2"] = "nb1"
    """nb1: blocks of at most 680 bits down and 1000 up; nb2 (Release 14): of at most 2536 bits both ways."""
    harq_processes: Literal[1, 2] = 1
    """Blocks of one cycle; 2 only for nb2."""
    deployment: Literal["stand_alone", "guard_band", "in_band"] = "stand_alone"
    """Where the carrier lies: in a band of its own, or beside or inside an LTE carrier (in_band: I_TBS 10 at most)."""
    anchor: bool = True
    """Whether the downlink carrier is an anchor, which also carries synchronisation and broadcast."""
    anchor_free: Fraction | None = None
    """Part of an anchor's subframes without synchronisation and broadcast; left out, 0.75: NPBCH and NPSS take one of
    ten each, NSSS one of twenty. With much system information it is about 0.7."""
    tones: Annotated[tuple[Literal[1, 3, 6, 12], ...], Strict(False)] = (12, 6, 3, 1)
    """Tones of 15 kHz that an uplink block may have; a device in bad coverage puts its power into few."""
    narrow_tone: bool = False
    """Whether single tones of 3.75 kHz are used too."""
    control_period_ms: Annotated[tuple[Positive, Positive, Positive], Strict(False)] | None = None
    """Period of the control channel in milliseconds (NPDCCH: R_max x G) in each coverage class, a multiple of the one
    before; left out, a control message may begin at any time."""
    random_access: Several[RandomAccess] = (
        RandomAccess(),
        RandomAccess(repetitions=8, period_ms=640),
        RandomAccess(repetitions=32, period_ms=2560),
    )
    """What random access takes of the uplink carrier, for each coverage class that the cell serves; `[]` for none."""
    hysteresis_db: Annotated[float, Interval(ge=0, le=60)] = 3.0
    """How much less its coupling loss must be than a threshold before a device goes back to a better coverage class."""
    uplink_receiver_gain_db: Annotated[float, Interval(ge=-20, le=20)] = 3.0
    """What two antennas of a base station gain over the receiver that needed ratios were simulated for. Calibrated, so
    that a device at 164 dB has 0.3 kbit/s up."""

    @key_rule
    def _two_processes_of_nb2(self) -> None:
        if self.harq_processes == 2 and self.category == "nb1":
            raise Misfit(
                "harq_processes=2 is for category nb2, and NB1 has one; write category: nb2, or leave it out",
                "harq_processes",
            )

    @key_rule
    def _periods_of_the_standard(self) -> None:
        shortest_ms, longest_ms = PERIODS_MS
        for place, period_ms in enumerate(self.control_period_ms or ()):
            if not shortest_ms <= period_ms <= longest_ms:
                raise Misfit(
                    f"{period_ms:g} must be from {shortest_ms:g} to {longest_ms:g}: a control channel repeats after "
                    "R_max x G milliseconds",
                    "control_period_ms",
                    place,
                )
        for place, (one_ms, next_ms) in enumerate(pairwise(self.control_period_ms or ()), 1):
            if next_ms % one_ms != 0:
                raise Misfit(
                    f"{next_ms:g} must be a multiple of {one_ms:g}, the period of the class before: in worse coverage "
                    "control messages are repeated more often, and their periods are longer",
                    "control_period_ms",
                    place,
                )

    @key_rule
    def _part_of_an_anchor(self) -> None:
        if not self.anchor and self.anchor_free is not None:
            raise Misfit(
                f"anchor_free={self.anchor_free:g} is for an anchor, and anchor=false; leave one of them out",
                "anchor_free",
            )

    @key_rule
    def _one_entry_for_each_class(self) -> None:
        if len(self.random_access) > len(THRESHOLDS_DB) + 1:
            raise Misfit(
                f"{len(self.random_access)} entries, and there are {len(THRESHOLDS_DB) + 1} coverage classes; give one "
                "for each class that the cell serves",
                "random_access",
            )

    @key_rule
    def _some_tones(self) -> None:
        if not self.tones and not self.narrow_tone:
            raise Misfit(
                "tones=[] leaves no way to send; name some of 1, 3, 6 and 12, or write narrow_tone: true", "tones"
            )

    @key_rule
    def _something_left_for_data(self) -> None:
        if self.data_part <= 0:
            raise Misfit(
                f"random access takes {100 * (1 - self.data_part):.3g} % of the carrier, and something must be left "
                "for data; give fewer subcarriers or repetitions, or a longer period_ms",
                "random_access",
            )

    @property
    def data_part(self) -> float:
        """The part of the uplink carrier that random access leaves."""
        return 1.0 - sum(each.part for each in self.random_access)

    @property
    def bandwidths_hz(self) -> UpDown[float]:
        """180 kHz both ways; tables know of tones."""
        return UpDown(CARRIER_HZ, CARRIER_HZ)

    @property
    def device_duplex(self) -> Duplex:
        """Devices of NB-IoT send or receive."""
        return "half"

    @property
    def tables(self) -> UpDown[RateTable]:
        """Those of a device whose other direction is good."""
        return UpDown(self._up_table(0, 1), self._down_table(0, 1))

    def _cycles(self, coverage_class: int) -> Cycles:
        return Cycles(
            category=self.category,
            processes=self.harq_processes,
            free_part=(self.anchor_free or ANCHOR_FREE) if self.anchor else 1.0,
            period_ms=0.0 if self.control_period_ms is None else self.control_period_ms[coverage_class],
            kept=self.kept,
            drawn_errors=self.drawn_errors,
        )

    def _down_table(self, coverage_class: int, answers: int) -> RateTable:
        """The downlink where acknowledgements are repeated so often."""
        return down_table(self._cycles(coverage_class), in_band=self.deployment == "in_band", answers=answers)

    def _up_table(self, coverage_class: int, control: int) -> RateTable:
        """The uplink where control messages are repeated so often."""
        tones = (*map(float, self.tones), *((0.25,) if self.narrow_tone else ()))
        return self._table_of(tones, self._cycles(coverage_class), control)

    def _table_of(self, tones: tuple[float, ...], cycles: Cycles, control: int) -> RateTable:
        return up_table(
            cycles,
            tones=tones,
            control=control,
            gain_db=self.uplink_receiver_gain_db,
            free_air=self.data_part,
        )

    def answers(self, uplink_snr_db: NDArray[np.float64]) -> NDArray[np.intp]:
        """How often the acknowledgements of each device are repeated: never less often than at a better ratio."""
        any_time = replace(self._cycles(0), period_ms=0.0)
        table = self._table_of((12.0,), any_time, 1)
        repetitions = np.array([MOST_ANSWERS, *(row.format.repetitions for row in table.rows[1:])], np.intp)
        from_the_best_on = np.maximum.accumulate(repetitions[::-1])[::-1]
        found: NDArray[np.intp] = np.minimum(MOST_ANSWERS, from_the_best_on)[table.row_of(uplink_snr_db)]
        return found

    def controls(self, downlink_snr_db: NDArray[np.float64]) -> NDArray[np.intp]:
        """How often the control messages for each device are repeated: the fewest times that are enough."""
        needed = needed_snr()["in_band_down" if self.deployment == "in_band" else "stand_alone_down"]
        needed_db = np.array([needed.db(0, number) for number in reversed(DOWN_REPETITIONS)])
        enough = np.searchsorted(needed_db, downlink_snr_db, side="right")
        found: NDArray[np.intp] = np.array([DOWN_REPETITIONS[-1], *reversed(DOWN_REPETITIONS)], np.intp)[enough]
        return found

    def coverage_classes(
        self, downlink_snr_db: NDArray[np.float64], before: NDArray[np.int8] | None = None
    ) -> NDArray[np.int8]:
        """The class of each device, which had the class *before*."""
        return coverage_classes(self._zero_ratio_loss_db - downlink_snr_db, self.hysteresis_db, before)

    @property
    def _zero_ratio_loss_db(self) -> float:
        """The coupling loss at which the downlink's ratio is 0 dB."""
        power_dbm, figure_db, margin_db = REFERENCE_DBM, REFERENCE_NOISE_FIGURE_DB, 0.0
        if isinstance(self.snr, FromLinkBudget):
            power_dbm, figure_db = self.snr.station_power_dbm, self.snr.device_noise_figure_db
            margin_db = self.snr.downlink_interference_margin_db
        return power_dbm - noise_dbm(CARRIER_HZ) - figure_db - margin_db

    def rates_at_all(self, snr_db: RatiosOfMany, before: RatesOfMany | None = None) -> RatesOfMany:
        """The best rows for what the other direction allows; classes as the hysteresis leaves them."""
        return self._rates_in(self._classes_at(snr_db, before), snr_db)

    def rates_under(
        self, snr_db: RatiosOfMany, margin_db: RatiosOfMany, before: RatesOfMany | None = None
    ) -> RatesOfMany:
        """The same; classes are by coupling loss, and know nothing of other cells."""
        ratios_db = UpDown(snr_db.uplink - margin_db.uplink, snr_db.downlink - margin_db.downlink)
        return self._rates_in(self._classes_at(snr_db, before), ratios_db)

    def _classes_at(self, snr_db: RatiosOfMany, before: RatesOfMany | None) -> NDArray[np.int8]:
        return self.coverage_classes(snr_db.downlink, None if before is None else before.coverage_class)

    def _rates_in(self, classes: NDArray[np.int8], snr_db: RatiosOfMany) -> RatesOfMany:
        tables = np.zeros_like(classes) if self.control_period_ms is None else classes
        up = looked_up(self._up_table, tables, self.controls(snr_db.downlink), snr_db.uplink)
        down = looked_up(self._down_table, tables, self.answers(snr_db.uplink), snr_db.downlink)
        return RatesOfMany(
            up.bps,
            down.bps,
            up.share,
            down.share,
            formats=UpDown(up.formats, down.formats),
            uplink_row=up.row,
            downlink_row=down.row,
            coverage_class=classes,
        )

    def budget_at(
        self, way: Literal[0, 1], power: PowerBudget | None, loss_db: float, snr_db: UpDown[float]
    ) -> LinkBudget:
        """With the row that is taken, for the repeats that the other direction needs."""
        return self.budget_under(way, power, loss_db, snr_db, UpDown(0.0, 0.0))

    def budget_under(
        self,
        way: Literal[0, 1],
        power: PowerBudget | None,
        loss_db: float,
        snr_db: UpDown[float],
        margin_db: UpDown[float],
    ) -> LinkBudget:
        """The same; the class knows nothing of other cells."""
        by_loss = np.array([snr_db.downlink])
        snr_db = UpDown(snr_db.uplink - margin_db.uplink, snr_db.downlink - margin_db.downlink)
        up, down = (np.array([ratio_db]) for ratio_db in snr_db)
        coverage_class = 0 if self.control_period_ms is None else int(self.coverage_classes(by_loss)[0])
        if way == 0:
            table = self._up_table(coverage_class, int(self.controls(down)[0]))
        else:
            table = self._down_table(coverage_class, int(self.answers(up)[0]))
        return self.budget_of(table.at(snr_db[way]), way, power, loss_db, snr_db[way])
