"""The other side: the same encoder, data and settings with transformers' own models, tokenizers and Trainer.

It runs where onion is not installed, and imports nothing of it.

__main__.py    a job: train, measure, answer
head.py        the head that a job begins with, for our side
tasks.py       the tasks by name, and a job's model before the first step
training.py    what a task hands to the Trainer, and how the Trainer is set
texts.py       classification and regression, as in transformers' run_glue.py
tags.py        tagging, as in run_ner.py
answers.py     reading comprehension, as in run_qa.py
squad.py       its figures
files.py       the formats of the data
"""
