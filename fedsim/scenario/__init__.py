"""From a YAML file to a checked scenario, and from a scenario to a world: the only wiring there is."""
