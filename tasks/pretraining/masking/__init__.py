"""Choosing what is masked."""
