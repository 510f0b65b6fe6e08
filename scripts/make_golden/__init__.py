"""The golden files of the tests, made by the reference implementations: ``python -m scripts.make_golden WHAT ...``.

    encoders transformers | encoders paddlenlp    small random encoders in every layout, and what they compute
    minilm FOLDER                                 MiniLM's outputs and some gradients, by transformers
    sentences FOLDER                              MiniLM's mean-pooled vectors, by sentence-transformers
    tokenizers DATA transformers|paddlenlp|plain  digests of ids of real texts
    merges DATA                                   merges of a byte-level BPE that is trained on these texts
    ernie_tiny DATA                               a small tokenizer like ERNIE tiny's, and digests of its ids
    xlnet_train DATA, xlnet_expect                a small SentencePiece model, and the ids of transformers' XLNet

FOLDER is that of ``minilm`` (``onion weights get minilm``), DATA the data folder, ``../shared/data``. Run it where the
reference is installed; ``make parity`` leaves such environments behind. The files were made with transformers 5.23.0,
torch 2.13.0, sentence-transformers 6.2.0, PaddleNLP 2.8.1, sentencepiece 0.2.3, and Unicode 14 (Python 3.11).
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "models" / "golden"
