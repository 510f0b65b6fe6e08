"""Networks of tasks: heads over an encoder, several heads, distillation, GAN-BERT. They read no files."""
