"""All planted faults. A new one is a row in the file of its kind."""

from __future__ import annotations

from mutants import (
    in_batched,
    in_channels,
    in_comparisons,
    in_compiled,
    in_data,
    in_dealing,
    in_fair_sharing,
    in_figures,
    in_files,
    in_grouping,
    in_groups,
    in_half_duplex,
    in_messages,
    in_models,
    in_outages,
    in_python,
    in_radio,
    in_recordings,
    in_rounds,
    in_seconds,
    in_semantics,
    in_streams,
    in_tables,
    in_updates,
    in_water_filling,
    in_waves,
)
from mutants.fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: tuple[Fault, ...] = (
    *in_messages.FAULTS,
    *in_channels.FAULTS,
    *in_fair_sharing.FAULTS,
    *in_water_filling.FAULTS,
    *in_half_duplex.FAULTS,
    *in_outages.FAULTS,
    *in_radio.FAULTS,
    *in_rounds.FAULTS,
    *in_streams.FAULTS,
    *in_tables.FAULTS,
    *in_files.FAULTS,
    *in_data.FAULTS,
    *in_dealing.FAULTS,
    *in_seconds.FAULTS,
    *in_grouping.FAULTS,
    *in_groups.FAULTS,
    *in_models.FAULTS,
    *in_batched.FAULTS,
    *in_compiled.FAULTS,
    *in_recordings.FAULTS,
    *in_waves.FAULTS,
    *in_semantics.FAULTS,
    *in_updates.FAULTS,
    *in_comparisons.FAULTS,
    *in_figures.FAULTS,
    *in_python.FAULTS,
)
