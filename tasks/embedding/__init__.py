"""Embeddings: one vector per text."""
