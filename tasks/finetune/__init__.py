"""What the commands do: from settings and files to checkpoints, figures and predictions.

settings.py    what a training was asked to do, and the file in its folder that remembers it
presets.py     settings by name: those that ERNIE's authors published
config_file.py settings from a YAML file
training.py    fine_tune and the job behind ``onion train``
initial.py     weights learned elsewhere
inference.py   the jobs behind ``onion evaluate`` and ``onion predict``
"""
