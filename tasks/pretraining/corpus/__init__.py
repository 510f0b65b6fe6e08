"""Corpora: texts as tokens with borders of words and sentences, in onion's files and in those of other systems."""
