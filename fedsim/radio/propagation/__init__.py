"""Propagation: what is lost between two antennas, in the median, by walls and by shadows.

One class and one line per path-loss model. The models of 3GPP are those of TR 38.901 clause 7.4; their coefficients are
in the tables beside this file, with the clause of each row.
"""

REGISTRY = {
    "given": "fedsim.radio.propagation.simple:GivenLoss",
    "free_space": "fedsim.radio.propagation.simple:FreeSpace",
    "log_distance": "fedsim.radio.propagation.simple:LogDistance",
    "uma": "fedsim.radio.propagation.urban:UrbanMacro",
    "umi": "fedsim.radio.propagation.urban:UrbanMicro",
    "rma": "fedsim.radio.propagation.rural:RuralMacro",
    "inh_open": "fedsim.radio.propagation.office:OpenOffice",
    "inh_mixed": "fedsim.radio.propagation.office:MixedOffice",
    "inf_sl": "fedsim.radio.propagation.factory:SparseLow",
    "inf_dl": "fedsim.radio.propagation.factory:DenseLow",
    "inf_sh": "fedsim.radio.propagation.factory:SparseHigh",
    "inf_dh": "fedsim.radio.propagation.factory:DenseHigh",
    "inf_hh": "fedsim.radio.propagation.factory:HighHigh",
}
