"""Broken data files through all commands: ``make spoil``."""
