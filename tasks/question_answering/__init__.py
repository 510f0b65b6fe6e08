"""Answers that are spans of a context: the parts of ``reading.py``.

questions.py   questions out of SQuAD's JSON, and out of lines
windows.py     a question and its context as windows of tokens, with the answer's place in them
answers.py     logits -> the best spans of a window -> the answer to a question
"""
