"""Token classification: a tag for every word of a text.

task.py           the task
tagged_text.py    a row as words with their offsets and tags; label_map.json
word_windows.py   windows over long texts; each word belongs to one of them
tagger.py, crf.py the heads: each word by itself, or the best sequence by a CRF
"""
