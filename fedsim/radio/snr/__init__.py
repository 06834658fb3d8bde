"""Where a device's signal-to-noise ratio comes from. One file and one line per source."""

REGISTRY = {
    "given": "fedsim.radio.snr.given:Given",
    "link_budget": "fedsim.radio.snr.link_budget:FromLinkBudget",
}
