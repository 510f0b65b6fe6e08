"""Encoders, their weights and tokenizers, and where those are fetched from; imported as ``onion.models``.

    families.py              the registry: by model_type the config, names and encoder of a family        no Paddle
    auto.py                  load_encoder: an encoder of any family
    pretrained_config.py     what every family's config has                                               no Paddle
    pretrained_encoder.py    what every family's encoder has: the contract of tasks; inputs.py: its arguments
    electra/, xlnet/         families; BERT, ERNIE and RoBERTa are config.py, encoder.py and layers.py
    config.py, checks.py     EncoderConfig: the numbers of an encoder                                     no Paddle
    tokenizer.py             Tokenizer: texts -> token ids, cut to a length                               no Paddle
    splitting/               how: WordPiece, byte-level BPE, SentencePiece; vocabularies, windows         no Paddle
    weights.py               read_weights, write_weights: the weights of a folder                         no Paddle
    shapes.py, fitting.py    whether weights are those of a config                                        no Paddle
    formats/                 how: every system's files                                                    no Paddle
    hub.py                   fetch, resolve: named models -> local folders                                no Paddle
    downloads/               how: Hugging Face's hub, addresses, archives                                 no Paddle
    encoder.py, layers.py    Encoder: the Transformer itself
    norm.py                  LayerNorm, with a gradient that is right on the CPU too
    dispatch.py              which of the following computes its layers
    by_hand/                 its layers in training on the CPU, with a backward pass of their own
    lean.py, plain.py        its layers in prediction; whether nobody has changed them
    inside.py                hidden states and attention of a run of it
    packing.py               Packing: where the tokens of a padded batch stand
    ops.py                   linear, dropout, rows: the operations that decide the speed
    pretraining.py           the heads it was pretrained with

Nothing is imported here, so that ``from onion.models.tokenizer import Tokenizer`` does not load Paddle.
"""
