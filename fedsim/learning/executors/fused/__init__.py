"""Layers of the plain loop that PyTorch has no fast kernel for, in machine code of our own: float32 on a CPU."""
