"""Protocols: who talks when, what is sent, and what is computed from it. The one place where time and learning meet."""

REGISTRY = {
    "fedavg": "fedsim.protocols.fedavg:FedAvg",
    "fedprox": "fedsim.protocols.fedprox:FedProx",
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
