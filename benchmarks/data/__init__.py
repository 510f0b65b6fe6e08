"""Data: from texts to features, from features to batches, and what it takes to begin.

__main__.py                  the rounds
sets.py                      the texts, and the folders of their tokenizers
by_onion.py                  a side: texts to features by onion
by_transformers.py           the other: transformers' fast tokenizer with its own batching
cached.py                    features from the cache through a DataProvider
training.py                  a fine-tuning by onion: its first batch, its memory, its waits for data
hugging_face_training.py     the same by transformers' Trainer
figures.py                   what the rounds came to
"""
