"""Networks of tasks: heads over an encoder, several heads, distillation, GAN-BERT. They do not read files."""
