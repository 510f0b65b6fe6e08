"""Networks of tasks: heads over an encoder, several heads, distillation, GAN-BERT. They do not read files.

Tasks import their network when they make it, since nothing else of them needs Paddle. Most networks decode their
outputs by the functions in numpy that decode those of an exported model (``Task.decoding``).
"""
