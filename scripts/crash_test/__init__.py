"""Runs killed anywhere by SIGKILL and resumed: ``make crash-test``."""
