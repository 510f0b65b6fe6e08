"""Features: examples as columns of numbers, in memory, on disk, or as a stream.

examples.py     Examples: a sequence over columns
store.py        columns in files, mapped into memory
cache.py        the folder of stores: one for each file, tokenizer and task
hashing.py      digests of files, tokenizers and versions, which make the keys of the cache
fit_cache.py    a task with what its training file tells, read once
stream.py       examples that are made when needed, and not stored
text_checks.py  warnings where most texts of a file are empty or unknown to the tokenizer
"""
