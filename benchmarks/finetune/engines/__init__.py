"""One engine a file.

``LIBRARIES`` are those whose versions count. ``losses(job)`` trains a few batches in the order of the file and without
dropout, and returns the loss of each. ``train(job)`` trains as a user would, and returns at least ``seconds`` and
``steps``.
"""
