"""Graphs as other tools write them: GraphML and JSON, read without losing, merging or inventing anything."""

from __future__ import annotations

__all__: list[str] = []
