"""Smaller models of trained ones: narrower, shallower, taught by what they were made of (DynaBERT)."""
