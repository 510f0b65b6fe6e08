"""XLNet (Yang et al. 2019): relative positions and segments, and a summary of the last token.

config.py, naming.py       its sizes, and what Hugging Face and PaddleNLP call its parameters      no Paddle
tokenizer.py               spiece.model as a tokenizer                                             no Paddle
encoder.py                 XLNetEncoder
attention.py, layers.py    how: relative attention, and the layers around it
"""
