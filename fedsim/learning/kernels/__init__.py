"""Machine code of our own, made for the shapes of a model by LLVM.

* `geometry`: the shapes of convolutions, and how images lie in memory.
* `arithmetic`, `emitter`: a few words in which kernels are written.
* `forward`, `gradients`, `tiled_forward`: convolutions with the pooling and the rectifier behind them.
* `products`, `corrections`, `tiled_products`: fully connected layers. `tiles`: products on tiles.
* `program`: makes machine code of what is written.
* `object_cache`: keeps it for the next process.
* `machine_code`: which machine code there is for which shapes.
"""
