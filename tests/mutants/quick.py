"""How drawn examples are tried on planted faults: always the same ones, and without looking for the smallest."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile(
    "mutants", deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
