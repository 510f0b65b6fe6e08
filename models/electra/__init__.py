"""ELECTRA (Clark et al. 2020): BERT's layers with embeddings of another width and another pooler.

config.py, naming.py    sizes, and the parameter names of Hugging Face and PaddleNLP      no Paddle
encoder.py              ElectraEncoder

Its tokenizer is BERT's WordPiece.
"""
