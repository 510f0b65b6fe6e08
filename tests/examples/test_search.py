"""The nearest rows are those of an exhaustive search, and a text finds itself."""

import json
import sys

import numpy as np
import pytest

import onion
from tests.examples.in_process import load, run_example
from tests.tasks.export.conftest import run_of  # noqa: F401  a fixture
from tests.tasks.helpers import films, tiny_encoder

pytest.importorskip("usearch")

TEXTS = sorted({text for text, _ in films(60, seed=4)})


@pytest.fixture
def asked(tmp_path):
    rows = "".join(json.dumps({"sentence": text, "id": number}) + "\n" for number, text in enumerate(TEXTS))
    (tmp_path / "texts.jsonl").write_text(rows)
    given = {"columns": "text_a=sentence", "encoder": tiny_encoder(tmp_path / "tiny"), "folder": tmp_path / "index"}
    words = [word for name, value in {**given, "max-length": 24}.items() for word in (f"--{name}", value)]
    return [tmp_path / "texts.jsonl", *words]


def test_it_finds_what_an_exhaustive_search_finds(asked, tmp_path):
    found, _ = run_example("search.py", *asked, "--count", 3, TEXTS[7], "a sad story")
    best = found[TEXTS[7]][0]
    assert best == {"score": pytest.approx(1, abs=1e-3), "text_a": TEXTS[7]}
    embedder = load("search").Embedder.from_pretrained(tmp_path / "tiny", normalize=True, max_length=24)
    cosines = np.load(next((tmp_path / "index").glob("*/cls_emb.npy"))) @ embedder(["a sad story"])[0]
    nearest = np.argsort(-cosines)[:3]
    assert [each["text_a"] for each in found["a sad story"]] == [TEXTS[number] for number in nearest]
    assert [each["score"] for each in found["a sad story"]] == pytest.approx(cosines[nearest], abs=1e-3)


def test_of_five_thousand_texts_nearly_all_of_the_nearest_are_found(tmp_path):
    texts = list(dict.fromkeys(text for text, _ in films(6000, seed=5)))[:5000]
    (tmp_path / "many.jsonl").write_text("".join(json.dumps({"text_a": text}) + "\n" for text in texts))
    embedder = load("search").Embedder.from_pretrained(tiny_encoder(tmp_path / "tiny"), normalize=True, max_length=24)
    load("search").embed_file(embedder, tmp_path / "many.jsonl", tmp_path / "index", quiet=True)
    search = load("search").Search(embedder, tmp_path / "index")
    vectors = np.load(tmp_path / "index" / "cls_emb.npy")
    assert len(vectors) == 5000
    asked = [f"{text} film" for text in texts[::250]]
    found = [{row["text_a"] for row in search(text, 10)} for text in asked]
    nearest = [{texts[number] for number in np.argsort(-(vectors @ one))[:10]} for one in embedder(asked)]
    assert sum(len(one & other) for one, other in zip(found, nearest, strict=True)) >= 0.95 * 10 * len(asked)


def written(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob("*/*")}


def test_a_second_search_reads_what_the_first_has_written_unless_the_file_has_changed(asked, tmp_path):
    first, _ = run_example("search.py", *asked, "a film")
    before = written(tmp_path / "index")
    assert run_example("search.py", *asked, "a film")[0] == first
    assert written(tmp_path / "index") == before
    (tmp_path / "texts.jsonl").write_text('{"sentence": "something else"}\n')
    (only,) = run_example("search.py", *asked, "a film")[0]["a film"]
    assert only["text_a"] == "something else"


def test_what_to_install_is_told(asked, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(SystemExit, match="pip install usearch"):
        run_example("search.py", *asked, "a film")


def test_a_model_puts_the_nearest_into_its_own_order(asked, run_of):  # noqa: F811
    pytest.importorskip("onnxruntime")
    folder = run_of("matching")
    found = run_example("search.py", *asked, "--count", 2, "--reranker", folder, "a film")[0]["a film"]
    plain = run_example("search.py", *asked, "--count", 8, "a film")[0]["a film"]
    model = onion.load(folder)
    scores = {row["text_a"]: model(("a film", row["text_a"]))["score"] for row in plain}
    best = sorted(scores.values(), reverse=True)[:2]
    assert [row["score"] for row in found] == pytest.approx(best, abs=1e-5)
    assert all(row["score"] == pytest.approx(scores[row["text_a"]], abs=1e-5) for row in found)
