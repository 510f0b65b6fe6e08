"""Encoder layers with a custom backward pass, for training on the CPU.

Paddle's CPU kernels for what is between the products run on one thread, and some of their gradients are slow
(docs/performance.md). Here a batch is split into parts; each goes through all layers forward and, later, backward, in
its own thread if there is more than one, and sums, masks and scales are computed in place. Results equal those of
models/layers.py but for rounding; tests/models/fused/training compares each part with autograd.

    stack.py        the entry: one autograd node for all layers
    runtime.py      the parts of a batch, their dropout masks, threads and gradients
    layer.py        a layer of one part, forward and backward
    attention.py    its attention
    primitives.py   linear layers, norms and activations
"""
