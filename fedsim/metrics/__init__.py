"""From a trace to tidy tables: measured afterwards, so that a metric never touches the simulation."""
