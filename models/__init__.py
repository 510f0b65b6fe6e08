"""Encoders, their weights and tokenizers, and where to download them; imported as ``onion.models``.

    families.py, auto.py            the registry of families; load_encoder loads a folder of any family
    pretrained_config.py, pretrained_encoder.py    what the configs and encoders of all families share
    encoder.py, config.py, layers.py               BERT, RoBERTa, ERNIE
    electra/, xlnet/                other families
    words/                          small encoders of words: a bag, a convolution, an LSTM
    packing.py, queries.py, inputs.py, ops.py      computation without padding
    adapter.py, lora.py             LoRA: adapters of linear layers, and merging them
    recompute.py                    gradient checkpointing
    fused/                          fast paths: dispatch, prediction, training, flash attention
    hidden_states.py                hidden states and attention scores, layer by layer
    pretraining_heads.py            masked LM and next-sentence prediction
    tokenizer.py, tokenization/     Tokenizer: texts -> token ids                    no Paddle
    weights.py, formats/            the weights of a folder, in every layout         no Paddle
    hub.py, downloads/              model names -> local folders                     no Paddle

Nothing is imported here, so that ``from onion.models.tokenizer import Tokenizer`` does not load Paddle.
"""
