"""Readers for files that others wrote: nothing in them is run, extracted or believed before it is checked."""
