"""The names of poolings. Nothing is imported: command lines need them."""

CLS, MEAN, POOLER = POOLINGS = ("cls", "mean", "pooler")
"""The vector of the classification token; the mean over all tokens; the encoder's pooled output."""

MAX_LENGTH = 128
"""Tokens of a text, if nothing else is asked for."""
