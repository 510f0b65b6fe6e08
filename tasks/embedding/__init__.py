"""Embeddings: one vector for each text."""
