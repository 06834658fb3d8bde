"""Learning as a lazy graph of keyed expressions: what is computed, from what, and where the numbers are kept."""
