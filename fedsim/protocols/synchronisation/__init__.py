"""Synchronised parts: what of the model is trained, sent and averaged in which round."""

REGISTRY = {
    "whole": "fedsim.protocols.synchronisation.whole:Whole",
    "lasp": "fedsim.protocols.synchronisation.lasp:LASP",
}
