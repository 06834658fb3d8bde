"""Graphs as other tools write them: GraphML and JSON, read without losing, merging or inventing anything."""
