"""Federated data sets: real samples, or only their numbers, spread over clients. One file and one line per data set."""

from __future__ import annotations

REGISTRY = {
    "digits": "fedsim.data.digits:Digits",
    "declared": "fedsim.data.declared:Declared",
}
