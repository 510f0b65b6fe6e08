"""Corpora of tokens that other systems have made, as they are."""
