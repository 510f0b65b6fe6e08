"""What networks learn from: examples as columns of numbers, in memory, on the disk, or as a stream.

examples.py   Examples: a sequence over columns
store.py      columns in files, mapped into memory
cache.py      the folder of stores: made once for a file, a tokenizer and a task
stream.py     examples that are made when they are asked for, and not kept
"""
