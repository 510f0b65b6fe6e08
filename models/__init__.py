"""Encoders, their weights and tokenizers, and where those are fetched from; imported as ``onion.models``.

    config.py      EncoderConfig: the numbers of an encoder (config.json)          no Paddle
    tokenizer.py   Tokenizer: texts -> token ids                                   no Paddle
    hub.py         fetch, resolve: named models -> local folders                   no Paddle
    tensors.py     safetensors files and atomic writing                            no Paddle
    naming.py      Hugging Face parameter names -> ours                            no Paddle
    weights.py     read_weights, write_weights: the weights of a folder            no Paddle
    ops.py         linear, dropout, rows: the operations that decide the speed
    packing.py     Packing: where the tokens of a padded batch stand
    encoder.py     Encoder: the Transformer itself

Nothing is imported here, so that ``from onion.models.tokenizer import Tokenizer`` does not load Paddle.
"""
