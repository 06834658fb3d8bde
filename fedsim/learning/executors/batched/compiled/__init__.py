"""Convolutions in machine code that is made for their shapes, by LLVM: with the pooling and the rectifier behind them.

* `geometry`: the shapes, and how images lie in memory.
* `emitter`: a few words in which kernels are written.
* `forward`, `gradients`: the kernels.
* `library`: makes machine code of them.
"""
