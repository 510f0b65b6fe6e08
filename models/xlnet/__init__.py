"""XLNet (Yang et al. 2019): relative positions and segments, and a summary of the last token.

config.py, naming.py       sizes, and the parameter names of Hugging Face and PaddleNLP      no Paddle
tokenizer.py               spiece.model as a tokenizer                                       no Paddle
attention.py, encoder.py   relative attention; XLNetEncoder
"""
