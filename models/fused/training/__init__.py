"""Encoder layers whose backward pass is written by hand, for training on the CPU.

Paddle's CPU kernels for what stands between the products run on one thread, and some of their gradients are slow
(docs/performance.md). Here the rows of a batch are parted, and each part goes through all layers forward and, later,
backward, in a thread of its own if there is more than one; what is added, masked or scaled is changed in place. The
figures are those of models/layers.py but for rounding; tests/models/fused/training holds each part against autograd.

    stack.py        what the encoder calls: one autograd node for all layers
    batch_parts.py  the rows of a batch that are computed together, and their dropout
    thread_pool.py  a function on every part at once
    layer.py        a layer, forward and backward, for one part
    attention.py    its attention
    primitives.py   linear layers, norms and activations
    gradients.py    the parameters' gradients as they come
"""
