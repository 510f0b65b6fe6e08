"""Token classification: a tag for every word of a text.

task.py           the task
tagged_text.py    a row as words with offsets and tags; label_map.json
word_windows.py   windows over long texts; each word belongs to one of them
batches.py        windows of words as a batch
tagger.py         the heads: independent tags, or the best sequence by a CRF
decoding.py       logits -> tags, without Paddle; viterbi.py finds the best sequence
tags.py           decoded tags with their probabilities
"""
