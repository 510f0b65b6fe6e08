"""Broken data files through all commands: ``make spoil``.

__main__.py   file after file, command after command
files.py      good files of every task
changes.py    ways to spoil one
trial.py      one command with one file, and what is wrong with what came of it
"""
