"""A search by meaning: the vectors of a file's texts, the texts beside them, and an index of nearest neighbours.

python examples/search.py texts.tsv "a film about love" --columns text_a=sentence --folder build/index

The first call embeds the file, and later ones read what it wrote below the folder. Printed as JSON are the nearest, by
a graph of neighbours (HNSW, Malkov and Yashunin 2016); a ``--reranker`` reads question and text together.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import onion
from onion.data import iter_rows
from onion.tasks.data.features.hashing import digest_of_file, digest_of_values
from onion.tasks.data.prepared import prepared
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.embedding.files import embed_file
from onion.tasks.validators import read_columns

try:
    from usearch.index import Index
except ModuleNotFoundError:
    sys.exit("This example searches with usearch: pip install usearch")


class Search:
    """The rows that ``embed_file`` wrote to a folder; vectors have length 1, so the inner product is the cosine."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.embedder = embedder
        self.rows = [row for _, row in iter_rows(folder / "rows.jsonl")]
        vectors = np.load(folder / "cls_emb.npy")
        self.index = Index(ndim=vectors.shape[1], metric="ip", dtype="f32")
        self.index.add(np.arange(len(vectors)), vectors, threads=1)  # in this order: the graph is always the same

    def __call__(self, question: str, count: int) -> list[dict[str, Any]]:
        """Return the rows nearest to a text, each with its cosine, the nearest first."""
        self.index.expansion_search = max(50, 2 * count)  # candidates that are looked at: more of them miss less
        found = self.index.search(self.embedder([question])[0], count)
        return [{"score": round(1 - float(each.distance), 4), **self.rows[each.key]} for each in found]


def reranked(reranker: Any, question: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in the order of a model's scores, the best first."""
    scores = [each["score"] for each in reranker([(question, row["text_a"]) for row in rows])]
    return [{**rows[place], "score": scores[place]} for place in np.argsort(scores, kind="stable")[::-1]]


def main() -> None:
    """Embed a file unless that is done, and search it for each text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", help="rows with text_a, as onion embed takes them")
    parser.add_argument("questions", nargs="+", metavar="TEXT", help="what to search for")
    parser.add_argument("--columns", type=read_columns, help="the file's column, such as text_a=sentence")
    parser.add_argument("--encoder", default="minilm", help="name or folder (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("index"), help="of indexes (default: %(default)s)")
    parser.add_argument("--count", type=int, default=5, help="rows to find (default: %(default)s)")
    parser.add_argument("--reranker", metavar="RUN", help="a model of the task matching")
    parser.add_argument("--max-length", type=int, help="tokens per text (default: what the encoder's folder says)")
    asked = parser.parse_args()
    embedder = Embedder.from_pretrained(asked.encoder, normalize=True, max_length=asked.max_length)
    rows = digest_of_file(prepared(asked.file, asked.columns, labelled=False))
    folder = asked.folder / digest_of_values({"rows": rows, "encoder": asked.encoder, "length": asked.max_length})[:12]
    folder.exists() or embed_file(embedder, asked.file, folder, columns=asked.columns)
    search = Search(embedder, folder)
    found = {text: search(text, asked.count * (4 if asked.reranker else 1)) for text in asked.questions}
    if model := asked.reranker and onion.load(asked.reranker):
        found = {text: reranked(model, text, rows)[: asked.count] for text, rows in found.items()}
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
