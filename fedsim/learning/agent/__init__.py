"""SPATL's agent: a graph network that looks at a model and says how much of each convolution to keep.

Yu et al., *SPATL: salient parameter aggregation and transfer learning for heterogeneous federated learning*, SC 2022,
section IV-B, and its public code; the graph network is that of Yu, Mazaheri and Jannesari, *Topology-aware network
pruning using multi-stage graph embedding and reinforcement learning*, ICML 2022.
"""
