"""How long a test waits for what hangs: the one limit of all tests."""

PATIENCE = 1800
"""Seconds. Nothing waits that long when it works, however slow or busy the machine: who comes to this end has found a
thread, a process or a search that would never have come to its own."""
