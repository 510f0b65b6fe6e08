"""Pretraining: corpora of tokens, and the tasks that an encoder learns from them."""
