"""Batches of samples as they arrive."""
