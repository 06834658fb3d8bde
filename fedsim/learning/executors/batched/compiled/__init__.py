"""Machine code of our own, made for the shapes of a model by LLVM.

* `geometry`: the shapes of convolutions, and how images lie in memory.
* `arithmetic`, `emitter`: a few words in which kernels are written.
* `forward`, `gradients`: convolutions with the pooling and the rectifier behind them.
* `products`: fully connected layers.
* `machine_code`: makes machine code of them.
"""
