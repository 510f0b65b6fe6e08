"""What transformers makes of texts with the weights of MiniLM, and the ids that the references make of lines."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np

UNLIMITED = 10**9


def minilm(folder: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """A batch of the texts, what BertModel makes of it, and the gradient of every parameter under our names."""
    import torch
    import transformers

    from references.by_transformers import MAKER, PLAIN, gradients

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, **PLAIN).float().eval()
    batch = tokenizer(list(texts), padding=True, return_tensors="pt")
    encoded = model(**batch)
    outputs = {"sequence_output": encoded.last_hidden_state, "pooled_output": encoded.pooler_output}
    mask = batch["attention_mask"].numpy()
    generator = np.random.default_rng(2)
    factors = {name: generator.normal(size=out.shape).astype(np.float32) for name, out in outputs.items()}
    factors["sequence_output"] *= mask[:, :, None].astype(np.float32)
    # By the number of texts, so that a gradient is of the size that training has.
    factors = {name: factor / np.float32(len(texts)) for name, factor in factors.items()}
    sum((out * torch.from_numpy(factors[name])).sum() for name, out in outputs.items()).backward()
    found = {name: tensor.numpy() for name, tensor in batch.items()} | {"maker": np.array(MAKER)}
    found |= {name: out.detach().numpy() for name, out in outputs.items()}
    found |= {f"factor:{name}": factor for name, factor in factors.items()}
    return found | {f"gradient:{name}": gradient for name, gradient in gradients(model).items()}


def transformers_ids(vocabulary: Path, lower: bool, lines: Sequence[str]) -> tuple[str, list[list[int]]]:
    """Who made them, and the ids of each line: transformers' tokenizer in Rust, by whichever files the folder holds."""
    import transformers

    with plain_vocabulary(vocabulary) as path:
        if (vocabulary / "tokenizer.json").is_file():
            tokenizer = transformers.AutoTokenizer.from_pretrained(vocabulary)
        elif (vocabulary / "merges.txt").is_file():
            tokenizer = transformers.RobertaTokenizer.from_pretrained(vocabulary)
        else:
            tokenizer = transformers.BertTokenizer.from_pretrained(path.parent, do_lower_case=lower)
    assert tokenizer.is_fast
    maker = f"transformers {transformers.__version__}"
    return maker, [tokenizer(line, truncation=False)["input_ids"] for line in lines]


def paddlenlp_ids(vocabulary: Path, lower: bool, lines: Sequence[str]) -> tuple[str, list[list[int]]]:
    """The same of PaddleNLP's ErnieTokenizer in Python."""
    from paddlenlp.transformers import ErnieTokenizer

    with plain_vocabulary(vocabulary) as path:
        tokenizer = ErnieTokenizer(str(path), do_lower_case=lower, model_max_length=UNLIMITED)
    return f"PaddleNLP {version('paddlenlp')}", [tokenizer(line)["input_ids"] for line in lines]


@contextmanager
def plain_vocabulary(folder: Path) -> Iterator[Path]:
    """A vocab.txt with a token a line, for as long as it is needed; ERNIE's hold the id too, after a tab."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "vocab.txt"
        if (folder / "vocab.txt").is_file():
            rows = (folder / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
            path.write_text("".join(row.split("\t")[0] + "\n" for row in rows), encoding="utf-8")
        yield path
