"""Protocols: who talks when, what is sent, and what is computed from it. The one place where time and learning meet."""

REGISTRY = {
    "fedavg": "fedsim.protocols.fedavg:FedAvg",
    "fedprox": "fedsim.protocols.fedprox:FedProx",
    "fedavgm": "fedsim.protocols.fedopt:FedAvgM",
    "fedadagrad": "fedsim.protocols.fedopt:FedAdagrad",
    "fedadam": "fedsim.protocols.fedopt:FedAdam",
    "fedyogi": "fedsim.protocols.fedopt:FedYogi",
    "fednova": "fedsim.protocols.fednova:FedNova",
    "scaffold": "fedsim.protocols.scaffold:Scaffold",
    "ida": "fedsim.protocols.ida:IDA",
    "ida_intrac": "fedsim.protocols.ida:IDAWithINTRAC",
    "ida_fedavg": "fedsim.protocols.ida:IDAWithFedAvg",
    "fedper": "fedsim.protocols.fedper:FedPer",
    "stp": "fedsim.protocols.stp:STP",
    "fedgsp": "fedsim.protocols.fedgsp:FedGSP",
    "naive_gsp": "fedsim.protocols.fedgsp:NaiveGSP",
    "naive_gsp_icg": "fedsim.protocols.fedgsp:NaiveGSPWithICG",
    "hfedms_s": "fedsim.protocols.hfedms:HFedMSS",
    "hfedms_d": "fedsim.protocols.hfedms:HFedMSD",
    "composed": "fedsim.protocols.composed:Composed",
    "centralised": "fedsim.protocols.centralised:Centralised",
}
