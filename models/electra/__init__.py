"""ELECTRA (Clark et al. 2020): BERT's layers, embeddings of a width of their own, and another pooler.

config.py, naming.py    its sizes, and what Hugging Face and PaddleNLP call its parameters      no Paddle
encoder.py              ElectraEncoder

Its tokenizer is BERT's WordPiece.
"""
