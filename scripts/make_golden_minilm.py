"""Write tests/models/golden/minilm.npz: what Hugging Face's BERT makes of a few texts with the weights of ``minilm``.

Run where torch and transformers are installed (not a dependency of onion); the reference was made with torch 2.13.0 and
transformers 5.23.0 on the CPU in float32:

    python -m scripts.make_golden_minilm ~/.cache/onion/minilm
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

GOLDEN = Path(__file__).parent.parent / "tests" / "models" / "golden" / "minilm.npz"
TEXTS = [
    ("A deep, moving film.", None),
    ("no", None),
    ("How many people live in Berlin?", "Berlin has a population of 3.5 million registered inhabitants."),
    ("The quick brown fox jumps over the lazy dog, and then it writes an unbelievably long letter home.", None),
    ("Ünïcödé, 中文 and e-mail@example.com: 12,345.67!", None),
    ("It rains.", "The streets are wet."),
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


def main(folder: str) -> None:
    """Run the reference once and write its inputs, outputs and some gradients."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    # The plain formulas rather than a fused attention kernel: they are what every implementation is measured against.
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").float().eval()
    pairs = [text if pair is None else (text, pair) for text, pair in TEXTS]
    found = [tokenizer(*((p,) if isinstance(p, str) else p), return_tensors="np") for p in pairs]
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
        GOLDEN,
        texts=np.array([text for text, _ in TEXTS]),
        pairs=np.array([pair or "" for _, pair in TEXTS]),
        **batch,
        pooled_output=out.pooler_output.detach().numpy(),
        sequence_output=(out.last_hidden_state * mask)[:, :, :DIMENSIONS].detach().numpy(),
        loss=loss.detach().numpy(),
        **{f"gradient:{name}": parameters[name].grad.numpy() for name in GRADIENTS},
    )
    print(f"{GOLDEN}: {GOLDEN.stat().st_size} bytes, length {length}, loss {float(loss):.6f}")


if __name__ == "__main__":
    main(sys.argv[1])
