"""Whether our mean-pooled vectors of ``minilm`` are those of sentence-transformers, to 1e-5; in two steps.

1. Where sentence-transformers is installed (not a dependency of onion; the golden file was made with its version 6.2.0,
   transformers 5.23.0 and torch 2.13.0 on the CPU in float32) write what it gives for a few texts, before and after its
   last module, which normalises. Where only torch and transformers are, its published formula is computed instead (the
   mean of the token vectors under the mask, then division by the Euclidean norm), and the file says so:

       python scripts/parity_embeddings.py write ~/.cache/onion/minilm [FILE]

2. Where onion is installed compare; exit status 1 if they differ:

       python scripts/parity_embeddings.py check ~/.cache/onion/minilm [FILE]

FILE is tests/tasks/golden/minilm_mean.npz unless given.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent.parent / "tests" / "tasks" / "golden" / "minilm_mean.npz"
TOLERANCE = 1e-5
TEXTS = [
    "A deep, moving film.",
    "no",
    "",
    "Ünïcödé, 中文 and e-mail@example.com: 12,345.67!",
    "It rains. The streets are wet, and nobody has brought an umbrella.",
    "Return the cosine of x in radians. " * 8,
]


def by_sentence_transformers(folder: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the vectors [texts, hidden] before and after normalisation, and who made them."""
    from sentence_transformers import SentenceTransformer, __version__
    from sentence_transformers.sentence_transformer import modules

    word = modules.Transformer(folder)
    pooling = modules.Pooling(word.get_embedding_dimension(), pooling_mode="mean")
    means = SentenceTransformer(modules=[word, pooling], device="cpu").encode(TEXTS)
    whole = SentenceTransformer(modules=[word, pooling, modules.Normalize()], device="cpu").encode(TEXTS)
    return means, whole, f"sentence-transformers {__version__}"


def by_transformers(folder: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the same from the formula."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).float().eval()
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    mask = batch["attention_mask"][:, :, None].float()
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    means = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
    whole = torch.nn.functional.normalize(means, p=2, dim=1)
    return means.numpy(), whole.numpy(), f"the formula, on transformers {transformers.__version__}"


def write(folder: str, path: Path) -> int:
    """Run the reference once and write its inputs and outputs."""
    try:
        means, whole, maker = by_sentence_transformers(folder)
    except ImportError:
        means, whole, maker = by_transformers(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, texts=np.array(TEXTS), means=means, normalized=whole, maker=np.array(maker))
    print(f"{path}: {path.stat().st_size} bytes, by {maker}")
    return 0


def check(folder: str, path: Path) -> int:
    """Hold our vectors against a file of :func:`write`."""
    from onion.tasks.embedding import Embedder

    golden = np.load(path)
    worst = 0.0
    for name, normalize in (("means", False), ("normalized", True)):
        embedder = Embedder.from_pretrained(folder, "mean", normalize=normalize)
        difference = float(np.abs(embedder(golden["texts"].tolist()) - golden[name]).max())
        print(f"minilm, {name}: max abs difference to {golden['maker']}: {difference:.1e}")
        worst = max(worst, difference)
    return int(not worst <= TOLERANCE)


def main(words: list[str]) -> int:
    """Run one of the two steps."""
    steps = {"write": write, "check": check}
    if len(words) not in (2, 3) or words[0] not in steps:
        print(__doc__, file=sys.stderr)
        return 2
    return steps[words[0]](words[1], Path(words[2]) if len(words) == 3 else GOLDEN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
