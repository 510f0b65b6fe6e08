"""Embeddings in Python: against plain numpy, against the padded encoder cut off, against sentence-transformers."""

import shutil

import numpy as np
import paddle
import pytest
import safetensors.numpy

from onion import DataProvider, Forward, Observer, Runner
from onion.data import iter_rows
from onion.errors import DataError, WeightsError
from onion.models import hub
from onion.models.encoder import Encoder
from onion.tasks.collector import Collector
from onion.tasks.embedding import files
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.embedding.files import Expected, TextStream, embed, embed_file
from onion.tasks.embedding.names import POOLINGS
from onion.tasks.embedding.npy import NpyFile
from onion.tasks.networks.pooled_encoder import PooledEncoder
from tests.paths import ROOT
from tests.tasks.helpers import HIDDEN, films, snapshot, tiny_arrays, tiny_encoder, write_tsv

GOLDEN = ROOT / "tests" / "tasks" / "golden" / "minilm_mean.npz"

TEXTS = [text for text, _ in films(37, seed=5)]


@pytest.fixture
def data(tmp_path):
    return write_tsv(tmp_path / "a.tsv", [(text,) for text in TEXTS], ("text_a",))


@pytest.fixture(scope="module")
def encoder(encoder_folder):
    return Encoder.from_pretrained(encoder_folder)


@pytest.fixture
def make(encoder, tokenizer):
    """An Embedder of the tiny encoder; keyword arguments replace some settings."""
    return lambda **settings: Embedder(encoder, tokenizer, **({"max_length": 24, "batch_size": 8} | settings))


def token_vectors(encoder, tokenizer, texts, pairs=None, max_length=24):
    """The plain way: one text a batch, so there is no padding; a list of [length, hidden] and the pooled outputs."""
    encoder.eval()
    tokens, pooled = [], []
    for one in tokenizer(texts, pairs, max_length=max_length):
        encoded = encoder(one.ids[None], one.types[None])
        tokens.append(encoded.sequence_output.numpy()[0])
        pooled.append(encoded.pooled_output.numpy()[0])
    return tokens, np.array(pooled)


def pooled_by_numpy(pooling, tokens, pooled):
    if pooling == "pooler":
        return pooled
    return np.array([each[0] if pooling == "cls" else each.sum(axis=0) / len(each) for each in tokens])


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("normalize", [False, True])
def test_poolings_are_those_of_numpy_and_in_order(make, encoder, tokenizer, pooling, normalize):
    found = make(pooling=pooling, normalize=normalize)(TEXTS)
    expected = pooled_by_numpy(pooling, *token_vectors(encoder, tokenizer, TEXTS))
    if normalize:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert (found.dtype, found.shape) == (np.float32, (37, HIDDEN))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_pairs_of_texts(make, encoder, tokenizer):
    pairs = ["a fine story !", *reversed(TEXTS[1:])]
    expected = pooled_by_numpy("mean", *token_vectors(encoder, tokenizer, TEXTS, pairs))
    np.testing.assert_allclose(make(pooling="mean")(TEXTS, pairs), expected, atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_an_inner_layer_is_the_encoder_with_the_upper_ones_cut_off(make, tokenizer, tmp_path, pooling):
    tiny_encoder(tmp_path, num_hidden_layers=1)
    kept = {name: array for name, array in tiny_arrays().items() if "layers.1." not in name}
    safetensors.numpy.save_file(kept, tmp_path / "model.safetensors")
    cut_off = Embedder(Encoder.from_pretrained(tmp_path), tokenizer, pooling, max_length=24, batch_size=8)
    found = make(pooling=pooling, layer=1)(TEXTS)
    assert found.tobytes() == cut_off(TEXTS).tobytes()
    assert np.abs(found - make(pooling=pooling)(TEXTS)).max() > 0.01
    assert make(pooling=pooling, layer=2)(TEXTS).tobytes() == make(pooling=pooling)(TEXTS).tobytes()


def test_an_inner_layer_makes_no_weights_and_leaves_the_encoder_alone(make, encoder):
    before = {name: id(parameter) for name, parameter in encoder.named_parameters()}
    paddle.seed(3)
    expected = paddle.rand([4]).numpy()
    paddle.seed(3)
    network = make(layer=1).network
    assert (paddle.rand([4]).numpy() == expected).all()
    assert {id(parameter) for parameter in network.parameters()} < set(before.values())
    assert {name: id(parameter) for name, parameter in encoder.named_parameters()} == before
    assert (encoder.config.num_hidden_layers, len(encoder.encoder.layers)) == (2, 2)


def test_it_is_an_onion_of_three_rings_that_can_be_drawn_and_run(make):
    embedder = make()
    runner = embedder.onion(TEXTS)
    assert isinstance(runner, Runner)
    assert [type(item) for item in runner] == [DataProvider, Collector, Forward]
    assert "collector" in str(runner)
    runner.run(passes=1)
    assert np.stack(runner[Collector].found).tobytes() == embedder(TEXTS).tobytes()


def test_the_encoder_keeps_its_mode_and_dropout_is_off(make, encoder):
    encoder.train()
    first = make()(TEXTS)
    assert encoder.training
    assert first.tobytes() == make()(TEXTS).tobytes()


def test_no_texts_an_empty_text_and_a_long_one(make):
    embedder = make(max_length=8)
    assert embedder([]).shape == (0, HIDDEN)
    assert np.isfinite(embedder(["", "film " * 1000])).all()
    with pytest.raises(DataError, match="not one text"):
        embedder("film")
    with pytest.raises(DataError, match="do not match"):
        embedder(["film"], ["a", "b"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "max"}, "pooling 'max': .* cls, mean, pooler"),
        ({"layer": 0}, "layer 0: the encoder has the layers 1 to 2"),
        ({"layer": 3}, "layer 3: the encoder has the layers 1 to 2"),
        ({"layer": 1, "pooling": "pooler"}, "layer 1: the pooler belongs to the last layer, 2"),
        ({"layer": 1.0}, "layer 1.0 is not a whole number"),
        ({"max_length": 25}, "^max_length 25: the encoder takes 3 to 24 tokens"),
        ({"max_length": "5"}, "max_length '5' is not a whole number"),
        ({"max_length": 3.5}, "max_length 3.5 is not a whole number"),
        ({"max_length": 2**70}, f"max_length {2**70}: the encoder takes 3 to 24 tokens"),
        ({"batch_size": 0}, "batch_size 0: a batch must have at least 1 text"),
        ({"batch_size": 1.5}, "batch_size 1.5 is not a whole number"),
    ],
)
def test_settings_that_do_not_fit(make, encoder_folder, settings, message):
    with pytest.raises(DataError, match=message):
        make(**settings)
    with pytest.raises(DataError, match=message):
        Embedder.from_pretrained(encoder_folder, **({"max_length": 24} | settings))


def test_texts_may_come_one_by_one(make):
    embedder = make()
    assert embedder(text for text in TEXTS[:3]).tobytes() == embedder(TEXTS[:3]).tobytes()
    assert embedder(iter(TEXTS[:3]), iter(TEXTS[3:6])).tobytes() == embedder(TEXTS[:3], TEXTS[3:6]).tobytes()
    assert embedder(iter([])).shape == (0, HIDDEN)


def test_a_pooler_that_was_never_trained_is_refused(encoder_folder, tmp_path):
    folder = shutil.copytree(encoder_folder, tmp_path / "encoder")
    kept = {name: array for name, array in tiny_arrays().items() if not name.startswith("pooler.")}
    safetensors.numpy.save_file(kept, folder / "model.safetensors")
    with pytest.raises(WeightsError, match="has no pooler, and a random one is meaningless"):
        Embedder.from_pretrained(folder, "pooler", max_length=24)
    assert Embedder.from_pretrained(folder, "mean", max_length=24)(TEXTS).shape == (37, HIDDEN)


def test_minilm_agrees_with_sentence_transformers():
    try:
        folder = hub.fetch("minilm")
    except WeightsError as error:
        pytest.skip(f"minilm cannot be fetched: {error}")
    golden = np.load(GOLDEN)
    texts = golden["texts"].tolist()
    for name, normalize in (("means", False), ("normalized", True)):
        found = Embedder.from_pretrained(folder, "mean", normalize=normalize)(texts)
        np.testing.assert_allclose(found, golden[name], atol=1e-5)
    np.testing.assert_allclose(Embedder.from_pretrained(folder)(texts), golden["normalized"], atol=1e-5)  # as it says


@pytest.mark.parametrize("tokens", [False, True])
def test_files_hold_what_the_embedder_gives_in_the_order_of_the_rows(make, encoder, tokenizer, tmp_path, tokens):
    texts = [text for text, _ in films(1000, seed=6)]  # three chunks of 50 batches of 8, the last one not full
    data = write_tsv(tmp_path / "a.tsv", [(text,) for text in texts], ("text_a",))
    report = embed_file(make(pooling="mean"), data, tmp_path / "new" / "out", tokens)
    plain, _ = token_vectors(encoder, tokenizer, texts)
    names = ["cls_emb", "lengths", "top_layer_emb"] if tokens else ["cls_emb"]
    assert snapshot(tmp_path / "new").keys() == {"out", "out/rows.jsonl", *(f"out/{name}.npy" for name in names)}
    assert report["rows"] == 1000
    assert report["tokens"] == sum(map(len, plain))
    found = {name: np.load(tmp_path / "new" / "out" / f"{name}.npy") for name in names}
    expected = {
        "cls_emb": pooled_by_numpy("mean", plain, None),
        "lengths": np.array([len(each) for each in plain]),
        "top_layer_emb": np.concatenate(plain),
    }
    for name in names:
        assert found[name].dtype == (np.int64 if name == "lengths" else np.float32)
        assert found[name].shape == expected[name].shape
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


def test_texts_and_other_columns_lie_beside_the_vectors(make, tmp_path):
    (tmp_path / "a.csv").write_text("id,sentence,more\n7,一部 film,x\n8,grim,y\n", encoding="utf-8")
    given = make(), tmp_path / "a.csv", tmp_path / "out"
    embed_file(*given, columns={"text_a": "sentence"}, carry=["id"])
    found = [cells for _, cells in iter_rows(tmp_path / "out" / "rows.jsonl")]
    assert found == [{"text_a": "一部 film", "id": "7"}, {"text_a": "grim", "id": "8"}]
    np.testing.assert_allclose(np.load(tmp_path / "out" / "cls_emb.npy"), make()(["一部 film", "grim"]), atol=1e-5)
    with pytest.raises(DataError, match=r"a\.csv:2: there is no 'nope' in this object; it has 'id', 'sentence'"):
        embed("no such encoder", *given[1:2], tmp_path / "other", columns={"text_a": "sentence"}, carry=["nope"])


def test_token_vectors_of_an_inner_layer_are_not_normalised(make, tmp_path, data):
    embed_file(make(layer=1, normalize=True), data, tmp_path / "out", tokens=True)
    vectors, tokens, lengths = (
        np.load(tmp_path / "out" / name) for name in ("cls_emb.npy", "top_layer_emb.npy", "lengths.npy")
    )
    firsts = tokens[np.cumsum(lengths) - lengths]
    np.testing.assert_allclose(firsts, make(layer=1)(TEXTS), atol=1e-5)
    np.testing.assert_allclose(vectors, firsts / np.linalg.norm(firsts, axis=1, keepdims=True), atol=1e-5)


def test_pairs_of_texts_in_a_file(make, tmp_path):
    rows = [("a lovely film", "is it"), ("", "the 'plot', \"cold\""), ("中 文", ""), ("sad", "a b c d e f")]
    path = write_tsv(tmp_path / "a.tsv", [("7", b, a) for a, b in rows], ("id", "text_b", "text_a"))
    embed_file(make(), path, tmp_path / "out")
    expected = make()([a for a, _ in rows], [b for _, b in rows])
    np.testing.assert_allclose(np.load(tmp_path / "out" / "cls_emb.npy"), expected, atol=1e-5)


BAD = [
    ("a.txt", "text_a\nfilm\n", "a.txt: cannot tell the format"),
    ("a.tsv", "text_a\n", "there are no rows"),
    ("a.tsv", "text_a\nfilm\nfilm\tplot\n", "a.tsv:3: expected 1 columns, got 2"),
    ("a.jsonl", '{"text_a": 3}\n', "a.jsonl:1: text_a is 3, not a string"),
    ("a.jsonl", '{"text_a": "a", "text_b": "b"}\n{"text_a": "a"}\n', "a.jsonl:2: text_b is missing here"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_bad_files_are_told_before_anything_is_computed(make, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    before = snapshot(tmp_path)
    embedder = make()
    embedder.network.forward = None
    with pytest.raises(DataError, match=message):
        embed_file(embedder, tmp_path / name, tmp_path / "out")
    assert snapshot(tmp_path) == before


def test_file_and_folder_are_looked_at_before_the_encoder(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        embed("no such encoder", tmp_path / "a.tsv", tmp_path / "out")
    data = write_tsv(tmp_path / "a.tsv", [("film",)], ("text_a",))
    with pytest.raises(DataError, match="is not empty, and nothing is overwritten"):
        embed("no such encoder", data, tmp_path)
    with pytest.raises(WeightsError, match="no such encoder"):
        embed("no such encoder", data, tmp_path / "out")


def test_an_empty_folder_is_taken_a_file_or_a_link_is_not(make, tmp_path):
    data = write_tsv(tmp_path / "a.tsv", [("film",)], ("text_a",))
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("a.tsv", "link"):
        with pytest.raises(DataError, match="cannot create a folder there"):
            embed_file(make(), data, tmp_path / name)
    with pytest.raises(DataError, match="cannot be written"):
        embed_file(make(), data, tmp_path / "a.tsv" / "out")
    embed_file(make(), data, tmp_path / "empty")
    assert np.load(tmp_path / "link" / "cls_emb.npy").shape == (1, HIDDEN)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_is_interrupted_leaves_nothing(make, tmp_path, data, monkeypatch, error):
    before = snapshot(tmp_path)
    forward, done = PooledEncoder.forward, []

    def stop_at_the_third(self, batch):
        done.append(snapshot(tmp_path))
        if len(done) == 3:
            raise error
        return forward(self, batch)

    monkeypatch.setattr(PooledEncoder, "forward", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else DataError):
        embed_file(make(), data, tmp_path / "new" / "out", tokens=True)
    assert len(done) == 3
    assert done[2] != before
    assert snapshot(tmp_path) == before


def test_a_file_that_shrinks_meanwhile(make, tmp_path, data, monkeypatch):
    folder = files.new_folder

    def shrink(out):
        write_tsv(data, [("film",)], ("text_a",))
        return folder(out)

    monkeypatch.setattr(files, "new_folder", shrink)
    with pytest.raises(DataError, match="changed while it was read; nothing was written"):
        embed_file(make(), data, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [data]


def test_texts_that_are_cut_are_told(make, tmp_path, caplog):
    data = write_tsv(tmp_path / "a.tsv", [("film",), ("film " * 30,)], ("text_a",))
    report = embed_file(make(max_length=8), data, tmp_path / "out")
    assert report["tokens"] == 3 + 8
    assert caplog.messages == [f"{data}: texts longer than 8 tokens, cut: 1"]


def test_a_stream_gives_every_row_once_anew_in_each_pass(tokenizer, data):
    stream = TextStream(data, tokenizer, 24, chunk=16)
    assert len(stream) == 37
    for _ in range(2):
        examples = list(stream)
        assert [sorted(each["place"] for each in examples[at : at + 16]) for at in (0, 16, 32)] == [
            [*range(16)],
            [*range(16, 32)],
            [*range(32, 37)],
        ]
        lengths = [len(each["ids"]) for each in examples]
        assert lengths[:16] == sorted(lengths[:16])
        in_order = sorted(examples, key=lambda each: each["place"])
        ends = np.cumsum([len(each["ids"]) for each in in_order])
        assert [each["start"] for each in in_order] == [0, *ends[:-1]]
        assert stream.tokens == ends[-1]


def test_the_progress_bar_knows_how_much_is_left():
    left = []
    look = Observer(on_batch_begin=lambda state: left.append(state.batches.__length_hint__()))
    Runner(DataProvider(lambda: iter(range(10)), 4), Expected(3), look).run(passes=1)
    assert left == [2, 1, 0]


@pytest.mark.parametrize("width", [None, 3])
def test_npy_files_in_any_order(tmp_path, width):
    tail = () if width is None else (width,)
    expected = np.arange(7 * (width or 1)).reshape(7, *tail)
    with NpyFile(tmp_path / "a.npy", "<i8", width) as file:
        for start, end in ((4, 7), (0, 1), (1, 4)):
            file.put(start, expected[start:end])
    found = np.load(tmp_path / "a.npy")
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy", mmap_mode="r"), expected)
