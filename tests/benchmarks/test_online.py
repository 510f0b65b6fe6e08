"""benchmarks/online: what the streams are made of, what a run tells, what is run again, what is drawn."""

from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.online import __main__ as online
from benchmarks.online import picture, streams, training
from benchmarks.online.streams import Phase
from tests.paths import ROOT


@pytest.fixture
def turned():
    """Two phases of points, of which the second has the labels of the first turned round."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(700, 8)).astype("float32")
    labels = (inputs[:, 0] > 0).astype("int64")
    first, second, other = slice(0, 320), slice(320, 640), slice(640, 700)
    return [
        Phase(inputs[first], labels[first], (inputs[other], labels[other])),
        Phase(inputs[second], 1 - labels[second], (inputs[other], 1 - labels[other])),
    ]


def test_reviews_are_sorted_by_their_words_and_no_text_comes_twice(tmp_path):
    rows = [("酒店", "房间%d"), ("这本书", "作者%d"), ("笔记本", "键盘%d")]
    lines = [f"{number % 2}\t{one}{other % number}" for number in range(8) for one, other in rows]
    lines += [lines[0], "1\t酒店的书", "0\t很好"]
    path = tmp_path / "train.tsv"
    path.write_text("\n".join(["label\ttext_a", *lines]) + "\n", encoding="utf-8")
    phases = streams.reviews(path, 1, tmp_path, each=5)
    assert [(len(each.labels), len(each.held_out[1])) for each in phases] == [(5, 3)] * 3
    seen = {row.tobytes() for each in phases for row in np.concatenate([each.inputs, each.held_out[0]])}
    assert len(seen) == 24
    assert streams.domain_of("酒店的书") is None
    assert streams.domain_of("很好") is None


def test_a_hashed_text_has_length_1_and_tells_texts_apart():
    assert np.linalg.norm(streams.hashed("房间很好")) == pytest.approx(1)
    assert streams.hashed("").sum() == 0
    assert (streams.hashed("房间") != streams.hashed("间房")).any(), (
        "their characters are the same, their pairs are not"
    )


def test_turned_labels_are_those_of_other_samples(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("label\ttext_a\n" + "".join(f"{n % 2}\tfilm {n}\n" for n in range(310)), encoding="utf-8")
    np.save(tmp_path / "minilm-310.npy", np.arange(310, dtype="float32").reshape(-1, 1))
    first, second = streams.films(path, 3, tmp_path, each=5)
    places = [each.inputs[:, 0].astype(int) for each in (first, second)]
    assert sorted(np.concatenate(places)) == list(range(10))
    assert (first.labels == places[0] % 2).all()
    assert (second.labels == 1 - places[1] % 2).all()
    assert (first.held_out[1] == 1 - second.held_out[1]).all()


def test_a_run_tells_what_happened_and_every_variant_is_another_run(turned):
    curves = set()
    for variant in training.VARIANTS:
        found = training.train(turned, variant, 1)
        curves.add(tuple(found["curve"]))
        assert len(found["curve"]) == 6
        assert np.mean(found["curve"]) == pytest.approx(found["overall"], abs=0.05)
        assert found["after"] < found["overall"]
        assert found["held_out"][0] == pytest.approx(1 - found["held_out"][1])
        assert training.train(turned, variant, 1)["curve"] == found["curve"]
        assert (found["changes"] > 0) == (variant == "drift")
    assert len(curves) == 5


def test_the_page_and_its_picture_have_every_variant(turned, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("signal.signal", lambda *given: None)
    monkeypatch.setattr(online, "use_threads", lambda count: count)
    monkeypatch.setattr(online, "SEEDS", (1,))

    def make(path, seed, out, each=320):
        return turned

    stream = streams.Stream("made", "A made one", "A text.", "train.tsv", ("one", "other"), make)
    monkeypatch.setattr(online.Online, "streams", (stream,))
    (tmp_path / "train.tsv").write_text("a")
    table = tmp_path / "page.md"
    words = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--table", str(table)]
    assert online.Online.main(words) == 0
    assert "5 of 5: made, average, seed 1\n    accuracy " in capsys.readouterr().out
    page = table.read_text(encoding="utf-8")
    assert (page.count("\n| "), "not run yet" in page) == (7, False)
    root = ElementTree.fromstring((tmp_path / "online_drift.svg").read_bytes())
    assert len(root.findall("{*}path[@class='curve']")) == 5


def test_a_line_of_the_picture_is_the_mean_of_the_seeds_and_the_docs_have_such_a_picture():
    drawing = picture.picture([picture.Panel("A title", {"a": [[1.0, 1.0], [0.1, 0.1]], "b": []}, [1])], 100)
    root = ElementTree.fromstring(drawing)
    (curve,) = root.findall("{*}path[@class='curve']")
    middle = picture.TOP + picture.HEIGHT / 2
    assert {float(word) for word in curve.get("d").split()[1::2]} == {middle}
    assert [each.text for each in root.findall("{*}text") if each.get("fill")] == ["a", "b"]
    assert "200 samples" in drawing
    root = ElementTree.fromstring((ROOT / "docs" / "online_drift.svg").read_bytes())
    assert len(root.findall("{*}path[@class='curve']")) == 10
