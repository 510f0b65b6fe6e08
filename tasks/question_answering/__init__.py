"""Extractive question answering: answers that are spans of a context.

task.py        the task
questions.py   questions from SQuAD's JSON or from lines; json_value.py reports the place of an invalid value
windows.py     a question and its context as windows of tokens, with the position of the answer
positions.py   positions of answers that stand for something else
answers.py     logits -> the best spans of a window -> the answer to a question
"""
