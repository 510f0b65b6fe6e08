"""The parts of ``tagging.py``: a tag for every word of a text.

tagged_text.py    a row as words, their places and their tags; label_map.json, the tags in their order
word_windows.py   windows over long texts; each word belongs to one of them
tagger.py, crf.py the heads: each word by itself, or the best path of all
"""
