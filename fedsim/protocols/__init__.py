"""Protocols: who talks when, what is sent, and what is computed from it. The one place where time and learning meet."""

REGISTRY = {
    "fedavg": "fedsim.protocols.fedavg:FedAvg",
    "fedprox": "fedsim.protocols.fedprox:FedProx",
    "fedmmd": "fedsim.protocols.fedmmd:FedMMD",
    "fedfusion_conv": "fedsim.protocols.fedfusion:FedFusionConv",
    "fedfusion_multi": "fedsim.protocols.fedfusion:FedFusionMulti",
    "fedfusion_single": "fedsim.protocols.fedfusion:FedFusionSingle",
    "stp": "fedsim.protocols.stp:STP",
    "fedgsp": "fedsim.protocols.fedgsp:FedGSP",
    "naive_gsp": "fedsim.protocols.fedgsp:NaiveGSP",
    "naive_gsp_icg": "fedsim.protocols.fedgsp:NaiveGSPWithICG",
    "hfedms_s": "fedsim.protocols.hfedms:HFedMSS",
    "hfedms_d": "fedsim.protocols.hfedms:HFedMSD",
    "composed": "fedsim.protocols.composed:Composed",
    "centralised": "fedsim.protocols.centralised:Centralised",
}
