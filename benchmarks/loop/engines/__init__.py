"""One file for each engine, written as its user would write it.

Each has

LIBRARIES                  whose versions are told, by the names that pip knows
ready(examples)            the batches as it wants them, made before any clock runs
train(batches, callbacks)  a pass over them, with that many callbacks that do nothing; it returns the parameters
"""
