"""Golden files of encoders: small random ones, and MiniLM with its published weights.

``tests/models/golden/ARCHITECTURE/`` has a folder for each layout and ``expected.npz``, made by transformers, or by
PaddleNLP for ERNIE, in float32 on the CPU: a batch, the outputs, and the gradient of every parameter with onion's names
and layout (linear weights [in, out]). The gradients are those of the sum of all outputs times ``factor:OUTPUT``. The
weights are the same in all layouts of an architecture. Static ERNIE has another epsilon and its own ``expected.npz``.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from scripts.make_golden import GOLDEN, ROOT
from scripts.reference_outputs.architectures import CASES, CLASSIFIERS, write

AUTHORITY = {"ernie": "paddlenlp"}  # the reference of the expected outputs; of others transformers
# Each layout once if the architecture does not matter, so that the files stay small.
LAYOUTS = {
    "transformers": {
        "bert": ("huggingface", "huggingface-shards", "torch"),
        "roberta": ("huggingface", "torch"),
        "ernie_1": ("huggingface",),
        "ernie_3": ("huggingface",),
        "electra": ("huggingface", "torch"),
        "electra_equal": ("huggingface",),
        "xlnet": ("huggingface", "torch"),
        "xlnet_clamped": ("huggingface",),
    },
    "paddlenlp": {
        "bert": ("paddlenlp",),
        "roberta": ("paddlenlp",),
        "ernie_1": ("paddlenlp", "paddlenlp-nested", "static"),
        "ernie_2": ("paddlenlp", "static"),
        "ernie_3": ("paddlenlp", "paddlenlp-nested", "static"),
        "ernie_tiny": ("paddlenlp", "paddlenlp-nested"),
    },
}
PAIRS = [
    ("A deep, moving film.", None),
    ("no", None),
    ("How many people live in Berlin?", "Berlin has a population of 3.5 million registered inhabitants."),
    ("The quick brown fox jumps over the lazy dog, and then it writes an unbelievably long letter home.", None),
    ("Ünïcödé, 中文 and e-mail@example.com: 12,345.67!", None),
    ("It rains.", "The streets are wet."),
]
TEXTS = [
    PAIRS[0][0],
    "no",
    "",
    PAIRS[4][0],
    "It rains. The streets are wet, and nobody has brought an umbrella.",
    "Return the cosine of x in radians. " * 8,
]
DIMENSIONS = 64  # of the sequence output: enough to see every head's work, and the file stays small
GRADIENTS = [  # Hugging Face's names
    "embeddings.LayerNorm.weight",
    "embeddings.token_type_embeddings.weight",
    "encoder.layer.0.attention.self.query.bias",
    "encoder.layer.2.attention.self.value.bias",
    "encoder.layer.3.output.LayerNorm.bias",
    "encoder.layer.5.intermediate.dense.bias",
    "pooler.dense.bias",
]


def random(reference: str) -> None:
    """Write the random encoders of one reference."""
    by = importlib.import_module(f"scripts.reference_outputs.by_{reference}")
    for name, layouts in LAYOUTS[reference].items():
        case = (CASES | CLASSIFIERS)[name]
        write(by, case, GOLDEN / name, layouts, AUTHORITY.get(case.family, "transformers") == reference)
        print(f"{GOLDEN / name}: {', '.join(layouts)}")


def minilm(folder: str) -> None:
    """Write what transformers' BERT computes with MiniLM's weights, and some gradients."""
    import torch
    import transformers

    from scripts.reference_outputs.by_transformers import PLAIN

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, **PLAIN).float().eval()
    found = [tokenizer(*filter(None, pair), return_tensors="np") for pair in PAIRS]
    length = max(one["input_ids"].shape[1] for one in found)
    batch: dict[str, Any] = {
        name: np.stack([np.pad(one[name][0], (0, length - one[name].shape[1])) for one in found]).astype(np.int64)
        for name in ("input_ids", "token_type_ids", "attention_mask")
    }
    out = model(**{name: torch.from_numpy(array) for name, array in batch.items()})
    mask = torch.from_numpy(batch["attention_mask"])[:, :, None]
    loss = out.pooler_output.square().sum() + (out.last_hidden_state * mask).square().mean()
    loss.backward()
    parameters = dict(model.named_parameters())
    np.savez_compressed(
        GOLDEN / "minilm.npz",
        texts=np.array([text for text, _ in PAIRS]),
        pairs=np.array([pair or "" for _, pair in PAIRS]),
        **batch,
        pooled_output=out.pooler_output.detach().numpy(),
        sequence_output=(out.last_hidden_state * mask)[:, :, :DIMENSIONS].detach().numpy(),
        loss=loss.detach().numpy(),
        **{f"gradient:{name}": parameters[name].grad.numpy() for name in GRADIENTS},
    )


def sentences(folder: str) -> None:
    """Write sentence-transformers' mean-pooled vectors of a few texts, before and after normalization."""
    from scripts.reference_outputs.texts import mean_vectors

    golden = ROOT / "tests" / "tasks" / "golden" / "minilm_mean.npz"
    np.savez_compressed(golden, texts=np.array(TEXTS), **mean_vectors(folder, TEXTS))
