"""LTE: transport blocks of 1 ms from the standard's table, and what LTE-M takes from it."""
