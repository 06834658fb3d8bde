"""How what a device sees changes in the course of time. One file and one line per drift."""

from __future__ import annotations

REGISTRY = {
    "sudden": "fedsim.data.stream.drift.sudden:Sudden",
    "gradual": "fedsim.data.stream.drift.gradual:Gradual",
    "recurring": "fedsim.data.stream.drift.recurring:Recurring",
    "shifts": "fedsim.data.stream.drift.shifts:Shifts",
}
