"""Exchanges: what goes down, what is done with it, and what comes up."""

REGISTRY = {
    "whole": "fedsim.protocols.exchanges.whole:Whole",
    "extractor": "fedsim.protocols.exchanges.extractor:Extractor",
    "salient_filters": "fedsim.protocols.exchanges.salient_filters:SalientFilters",
    "common_layers": "fedsim.protocols.exchanges.common_layers:CommonLayers",
    "lasp": "fedsim.protocols.exchanges.lasp:LASP",
}
