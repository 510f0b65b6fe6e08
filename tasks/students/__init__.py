"""Small students of a fine-tuned teacher: ERNIE's distillation into encoders of words, and into few layers."""
