"""Metrics of the tasks, as an Evaluator takes them.

Correlations are scipy's. The others are a few lines of numpy each, and stay so: they take batches one by one, in any
order, can be saved in mid-pass, and handle ties and missing answers as the tasks' official scripts do. scikit-learn
gives the same figures, but wants all labels at once, adds some 200 MB together with scipy, and takes seconds to import.
seqeval gives the same figures for chunks, but not the spans that predictions need from the same tags. The tests compare
with both.
"""
