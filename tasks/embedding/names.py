"""The names of poolings. Nothing is imported: command lines need them."""

CLS, MEAN, POOLER = POOLINGS = ("cls", "mean", "pooler")
"""The vector of the classification token; the mean over all tokens; the encoder's pooled output."""
