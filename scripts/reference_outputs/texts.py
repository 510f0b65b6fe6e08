"""What the references make of texts: MiniLM's vectors, token ids, the losses of a short fine-tuning."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

UNLIMITED = 10**9


def minilm(folder: str, texts: Sequence[str]) -> dict[str, Any]:
    """A batch of the texts, what BertModel makes of it, and the gradient of every parameter under our names."""
    import torch
    import transformers

    from scripts.reference_outputs.by_transformers import MAKER, PLAIN, gradients

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


def mean_vectors(folder: str, texts: Sequence[str]) -> dict[str, Any]:
    """Mean-pooled vectors [texts, hidden] by sentence-transformers: ``means``, ``normalized``; and their ``maker``."""
    from sentence_transformers import SentenceTransformer, __version__
    from sentence_transformers.sentence_transformer import modules

    word = modules.Transformer(folder)
    pooling = modules.Pooling(word.get_embedding_dimension(), pooling_mode="mean")
    means = SentenceTransformer(modules=[word, pooling], device="cpu").encode(list(texts))
    whole = SentenceTransformer(modules=[word, pooling, modules.Normalize()], device="cpu").encode(list(texts))
    return {"means": means, "normalized": whole, "maker": np.array(f"sentence-transformers {__version__}")}


NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}


def fine_tune(folder: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """The loss of each step, float64 ``[steps]``, before its update.

    Args:
        folder: of the encoder.
        job: ``texts``, ``labels``, ``head`` (the classifier's weights, [labels, hidden]), ``batch_size``, ``passes``,
            ``lr``, ``warmup``, ``weight_decay``, ``clip``, ``max_length``.
    """
    import torch
    from torch.nn.utils import clip_grad_norm_
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

    from scripts.reference_outputs.by_transformers import MAKER

    tokenizer = AutoTokenizer.from_pretrained(folder)
    head = torch.tensor(job["head"])
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(head), **NO_DROPOUT).float()
    model.train()
    with torch.no_grad():
        model.classifier.weight.copy_(head)
        model.classifier.bias.zero_()
    batches = list(_batches(tokenizer, job)) * job["passes"]
    recipe = {"learning_rate": job["lr"], "warmup_steps": job["warmup"], "weight_decay": job["weight_decay"]}
    arguments = TrainingArguments("unused", use_cpu=True, **recipe)
    trainer = Trainer(model, arguments)
    trainer.create_optimizer_and_scheduler(len(batches))
    losses = []
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        clip_grad_norm_(model.parameters(), job["clip"])
        trainer.optimizer.step()
        trainer.lr_scheduler.step()
        model.zero_grad()
        losses.append(loss.item())
    return {"losses": np.array(losses), "maker": np.array(MAKER)}


def _batches(tokenizer: Any, job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    import torch

    size = job["batch_size"]
    for begin in range(0, len(job["texts"]), size):
        texts, labels = (job[name][begin : begin + size] for name in ("texts", "labels"))
        cut = {"truncation": True, "max_length": job["max_length"]}
        yield {**tokenizer(texts, padding=True, return_tensors="pt", **cut), "labels": torch.tensor(labels)}
