"""Running scenarios: run folders, replications, results and comparisons."""
