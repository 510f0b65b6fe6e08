"""Features: examples as columns of numbers, in memory, on disk, or as a stream.

examples.py     Examples: a sequence over columns
store.py        columns in files, memory-mapped
cache.py        the folder of stores, one for each file, tokenizer and task; values that fitting a task found
hashing.py      digests of files, tokenizers and versions: the keys of the cache
stream.py       examples that are made on demand and not stored
text_checks.py  warnings if most texts of a file are empty or unknown to the tokenizer
"""
