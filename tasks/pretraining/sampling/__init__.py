"""How the examples of pretraining tasks are drawn: what their samplers share.

draws.py              random numbers that are a function of seed, pass and example
drawn_examples.py     examples that are drawn anew in each pass
room.py               how many tokens of text an example has room for
words.py              words of letters, whose tokens have labels
repeated_words.py     which of them occur in several segments of a document
halves.py             segments that are cut in two
length_matching.py    texts of similar length, of the same group or another one
passages.py           the paragraphs of a file of questions
marked_sentences.py   sentences that a discourse marker links; discourse_markers.py has the markers
"""
