"""The radio `lte_m`: from signal-to-noise ratios to the blocks and repetitions of Cat M1 and M2.

An LTE carrier of 10 MHz holds 8 narrowbands of six resource blocks, one of 20 MHz 16 (TS 36.211 clause 6.2.7): a cell
says with `carriers` how many serve LTE-M. A device of Cat M2 uses four of them together. Leaves out power control,
control messages of other devices, and that requests for grants are repeated in bad coverage.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fedsim.errors import Misfit
from fedsim.radio.budget import LinkBudget, PowerBudget
from fedsim.radio.lte.family import SUBFRAME_S, LteFamily
from fedsim.radio.lte.radio import RESOURCE_BLOCK_HZ
from fedsim.radio.lte_m.modes import Modes, joined
from fedsim.radio.lte_m.rows import LARGE_MOST_I_TBS, MOST_I_TBS, LteMDirection, lte_m_table, narrowband_blocks
from fedsim.radio.rate_table import RateTable
from fedsim.radio.settings import Duplex, RatesOfMany, UpDown
from fedsim.radio.snr_radio import RatiosOfMany
from fedsim.settings import key_rule

__all__ = ["LteM"]

MOST_BITS = {"m1": UpDown(1000, 1000), "m2": UpDown(6968, 4008)}
"""Of a block: TS 36.306 tables 4.1A-1 and 4.1A-2."""
LARGE_BITS = 2984
DOWN_DATA_AFTER_S = 2 * SUBFRAME_S


class LteM(LteFamily):
    """LTE-M (Cat M1, M2): the best block, resource blocks and repetitions of the standard for each ratio."""

    name: Literal["lte_m"] = "lte_m"
    category: Literal["m1", "m2"] = "m1"
    """m1: 6 resource blocks and blocks of at most 1000 bits; m2 (Release 14): 24, and 4008 bits down, 6968 up."""
    duplex: Duplex = "half"
    """half: the device sends or receives, as most do; full: both at once."""
    release: Literal[13, 14] = 14
    """Of the standard, by which the next three keys are allowed."""
    harq_processes: Literal[8, 10] = 8
    """Blocks of the downlink that may be under way; 10 is optional in Release 14."""
    bundling: bool = False
    """Whether a half-duplex device acknowledges four blocks at once, so that it receives as many blocks as it has
    processes before it switches (HARQ-ACK bundling, optional in Release 14)."""
    large_uplink_blocks: bool = False
    """Whether Cat M1 sends blocks of up to 2984 bits (optional in Release 14)."""
    coverage_mode: Literal["auto", "a", "b"] = "auto"
    """Coverage enhancement mode: a has up to 32 repetitions, b up to 2048; auto: b for devices whose ratios are too low
    for a."""

    @key_rule
    def _features_of_the_release(self) -> None:
        asked = {
            "category": self.category == "m2",
            "harq_processes": self.harq_processes == 10,
            "bundling": self.bundling,
            "large_uplink_blocks": self.large_uplink_blocks,
        }
        for key, newer in asked.items():
            if newer and self.release < 14:
                value = str(getattr(self, key)).lower()
                raise Misfit(f"{key}={value} came with Release 14; write release: 14, or leave it out", key)

    @key_rule
    def _large_blocks_of_m1(self) -> None:
        if self.large_uplink_blocks and self.category == "m2":
            raise Misfit(
                "large_uplink_blocks is for category m1, and M2 has blocks of 6968 bits anyway; leave it out",
                "large_uplink_blocks",
            )

    @key_rule
    def _bundles_where_they_matter(self) -> None:
        if self.bundling and self.duplex == "full":
            raise Misfit(
                "bundling is for half-duplex devices, and duplex is full; leave it out, or write duplex: half",
                "bundling",
            )
        if self.harq_processes == 10 and self.duplex == "half" and not self.bundling:
            raise Misfit(
                "harq_processes=10 changes nothing for a half-duplex device that acknowledges each block; "
                "write bundling: true, or leave it out",
                "harq_processes",
            )

    @property
    def bandwidths_hz(self) -> UpDown[float]:
        """All resource blocks of the category, both ways."""
        occupied_hz = narrowband_blocks(self.category) * RESOURCE_BLOCK_HZ
        return UpDown(occupied_hz, occupied_hz)

    @property
    def device_duplex(self) -> Duplex:
        """As the key says."""
        return self.duplex

    @property
    def grant_delay_s(self) -> float:
        """Until the grant is sent; a full-duplex device's data begins four subframes later.

        A half-duplex device's cycle begins with the grant.
        """
        return self.request_delay_s if self.duplex == "half" else super().grant_delay_s

    @property
    def assignment_delay_s(self) -> float:
        """Two subframes from the control message to the data; a half-duplex device's cycle has them already."""
        return 0.0 if self.duplex == "half" else DOWN_DATA_AFTER_S

    @property
    def tables(self) -> UpDown[RateTable]:
        """By I_TBS, size and repetitions; with both modes, those of devices whose other direction is good."""
        if self.coverage_mode != "auto":
            return self._tables_of(self.coverage_mode)
        modes = self._modes
        return UpDown(
            joined(modes.mode_a.uplink, modes.mode_b.uplink), joined(modes.mode_a.downlink, modes.mode_b.downlink)
        )

    def rates_at_all(self, snr_db: RatiosOfMany, before: RatesOfMany | None = None) -> RatesOfMany:
        """The best rows of each device's mode, whatever it was before."""
        if self.coverage_mode != "auto":
            return super().rates_at_all(snr_db, before)
        return self._modes.rates_at(snr_db)

    def budget_at(
        self, way: Literal[0, 1], power: PowerBudget | None, loss_db: float, snr_db: UpDown[float]
    ) -> LinkBudget:
        """With the row that is taken in the device's mode."""
        if self.coverage_mode != "auto":
            return super().budget_at(way, power, loss_db, snr_db)
        ratios = UpDown(np.array([snr_db.uplink]), np.array([snr_db.downlink]))
        table = self._modes[int(self._modes.in_mode_b(ratios)[0])][way]
        return self.budget_of(table.at(snr_db[way]), way, power, loss_db, snr_db[way])

    @property
    def _modes(self) -> Modes:
        return Modes(self._tables_of("a"), self._tables_of("b"))

    def _tables_of(self, mode: Literal["a", "b"]) -> UpDown[RateTable]:
        return UpDown(*(lte_m_table(self._direction(mode, uplink=uplink)) for uplink in (True, False)))

    def _direction(self, mode: Literal["a", "b"], *, uplink: bool) -> LteMDirection:
        large = uplink and self.large_uplink_blocks
        return LteMDirection(
            uplink=uplink,
            category=self.category,
            half_duplex=self.duplex == "half",
            processes=8 if uplink else self.harq_processes,
            bundling=self.bundling,
            most_bits=LARGE_BITS if large else MOST_BITS[self.category][0 if uplink else 1],
            most_i_tbs=LARGE_MOST_I_TBS if large else MOST_I_TBS,
            mode=mode,
            better_db=(self.uplink_receiver_gain_db if uplink else 0.0) - self.implementation_margin_db,
            kept=self.kept,
            drawn_errors=self.drawn_errors,
        )
