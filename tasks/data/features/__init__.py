"""What networks learn from: examples as columns of numbers, in memory, on the disk, or as a stream.

examples.py   Examples: a sequence over columns
store.py      columns in files, mapped into memory
cache.py      the folder of stores: made once for a file, a tokenizer and a task
digests.py    names for content: of files, tokenizers, code
fitted.py     what reading a whole file has told: a task's labels, the number of examples
stream.py     examples that are made when they are asked for, and not kept
tally.py      what is told where it is so of most examples
"""
