"""Hostile clients of the HTTP service of a run that learns."""
