"""Checkpoints of every released format, and the onions that wrote them.

    format-1/one/step-00000007/    of `onions.one`, cut after seven of its steps
    format-1/one/metrics.jsonl     its log
    format-1/one/end.json          what it came to where it was not cut

An exhibit is never made anew: `tests/test_museum.py` lets every later version go on from it. When the format changes,
``python -m tests.museum.make`` adds a folder.
"""
