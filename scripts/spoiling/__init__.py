"""Data files that are wrong, through the commands: what scripts/spoil.py is made of.

ground.py     an encoder, and for each task good files and a trained model
tables.py     good files of the tasks, as texts and as values
ways.py       all ways to spoil a file; each draws what it does
bytes.py      ways that know nothing of what a file means
cells.py      ways that write other rows, columns and values
places.py     what stands under a file's name and is no file
commands.py   the commands that a file is given to
trial.py      one command with one file, and what is wrong with how it ended
keeping.py    what a command may leave behind
"""
