"""Protocols: who talks when, what is sent, and what is computed from it. The one place where time and learning meet."""

REGISTRY = {
    "fedavg": "fedsim.protocols.fedavg:FedAvg",
    "fedprox": "fedsim.protocols.fedprox:FedProx",
    "centralised": "fedsim.protocols.centralised:Centralised",
}
