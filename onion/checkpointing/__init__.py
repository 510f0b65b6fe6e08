"""Checkpoints: exact, atomic, checked."""
