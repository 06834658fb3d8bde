"""Machine code of our own, made for the shapes of a model by LLVM. fedsim runs without it, and PyTorch computes all.

* `machine_code`: which kernels there are on this machine. With `shapes` and `processor` it is all that others import.
* `arithmetic`, `emitter`, `loops`, `functions`, `factors`: a few words in which kernels are written.
* `forward`, `gradients`, `tiled_forward`: convolutions with the pooling and the rectifier behind them.
* `products`, `corrections`, `tiled_products`: fully connected layers. `tiles`: products on tiles.
* `place_kernels`, `series_kernels`: small convolutions. `normalisation`, forward and backward; `recurrent_kernels` and
  their `cells`.
* `program`: makes machine code of what is written. `object_cache`: keeps it for the next process.

How to maintain them: docs/kernels.md.
"""
