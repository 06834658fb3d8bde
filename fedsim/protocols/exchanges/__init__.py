"""Exchanges: what goes down, what is done with it, and what comes up."""

REGISTRY = {
    "whole": "fedsim.protocols.exchanges.whole:Whole",
    "lasp": "fedsim.protocols.exchanges.lasp:LASP",
}
