"""Real processes that learn from a stream, and are killed.

steered.py        a run that is controlled while it learns: ``make online``
exactly_once.py   every sample counted in the weights: ``make exactly-once``
trainer.py, producer.py, sources.py, processes.py   what these and other scripts share
"""
