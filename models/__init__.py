"""Encoders, their weights and tokenizers, and where to get them; imported as ``onion.models``.

    families.py, auto.py            the registry of families; load_encoder opens a folder of any of them
    pretrained_config.py, pretrained_encoder.py    what a config and an encoder are, whatever the family
    encoder.py, config.py, layers.py               BERT, RoBERTa, ERNIE
    electra/, xlnet/                the other families
    packing.py, queries.py, inputs.py, ops.py      computing without padding
    fused/                          fast paths of the layers: dispatch, prediction, training, attention on GPUs
    hidden_states.py                hidden states and attention, layer by layer
    pretraining_heads.py            masked words and next sentence
    tokenizer.py, tokenization/     Tokenizer: texts -> token ids                    no Paddle
    weights.py, formats/            the weights of a folder, in every layout         no Paddle
    parameter_shapes.py, shape_checks.py           whether weights fit a config      no Paddle
    hub.py, downloads/              names -> folders on this machine                 no Paddle

Nothing is imported here, so that ``from onion.models.tokenizer import Tokenizer`` does not load Paddle.
"""
