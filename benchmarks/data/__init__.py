"""Data: from texts to features, from features to batches, and what it takes to begin.

__main__.py             the data sets, the rounds, figures and goals: python -m benchmarks.data
onion_sides.py          sides: texts to features; features from the cache; a fine-tuning from its start
work.py                 what both share
transformers_sides.py   the same of transformers: its fast tokenizer, its Trainer
"""
