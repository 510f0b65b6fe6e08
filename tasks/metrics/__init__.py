"""Metrics of the tasks, for Evaluator.

Correlations are computed by scipy. The others are a few lines of numpy each, because they take batches one by one, in
any order, can be saved in mid-pass, and handle ties and missing answers like the tasks' official scripts. scikit-learn
gives the same figures, but needs all labels at once, adds some 200 MB together with scipy, and takes seconds to import.
seqeval gives the same figures for chunks, but not the spans that predictions need. The tests compare with both.
"""
