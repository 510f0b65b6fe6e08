"""What is reached without reading, beside which the figures of pretraining tasks stand.

text_baselines.py    of classes of texts: the commonest one, by a number, by what two texts share
token_baselines.py   of classes of tokens, and of masked words
logistic.py          logistic regression on a few numbers
"""
