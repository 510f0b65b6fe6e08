"""benchmarks/serving: callers get their answers in order; no figures of services that answer differently."""

import importlib.metadata
import json
import sys

import pytest

from benchmarks.serving import __main__ as serving
from benchmarks.serving import direct, peers
from benchmarks.serving.callers import CLASSIFY, PREDICT, Heard, call
from onion.serving.server import ModelServer
from onion.tasks.export.export import export
from tests.serving.services import served
from tests.tasks.export.conftest import run_of  # noqa: F401  a fixture

pytest.importorskip("onnxruntime")


def test_labels_come_in_the_order_of_the_texts(run_of):  # noqa: F811
    texts = ["a good film", "an awful story", "the plot"]
    with served({"films": run_of("classification")}, engine="onnx") as server:
        assert isinstance(server, ModelServer)
        alone = call(server.url, PREDICT, texts, 6, 1)
        many = call(server.url, PREDICT, texts, 30, 8)
    assert alone.labels == alone.labels[:3] * 2
    assert many.labels == alone.labels[:3] * 10
    assert len(many.waits) == 30
    assert all(0 < wait <= many.seconds for wait in many.waits)


def test_onnx_runtime_is_called_alone(run_of, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    export(run_of("classification"), tmp_path / "model")
    files = sorted(path.name for path in (tmp_path / "model").iterdir())
    found = direct.main(tmp_path / "model", ["a good film", "the plot is dull"] * 10)
    assert min(found["loop"], found["products"]) > 0
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == files


def test_the_time_of_products_is_that_of_their_kernels(tmp_path):
    took = [("a_kernel_time", "MatMul", 7), ("a_fence_before", "MatMul", 100), ("b_kernel_time", "FusedGemm", 5)]
    took += [("c_kernel_time", "Softmax", 100)]
    events = [{"cat": "Node", "name": name, "dur": micro, "args": {"op_name": kind}} for name, kind, micro in took]
    events.append({"cat": "Session", "name": "model_run", "dur": 1000})
    (tmp_path / "profile.json").write_text(json.dumps(events))
    assert direct._seconds_of_products(tmp_path / "profile.json") == pytest.approx(12e-6)
    assert not (tmp_path / "profile.json").exists()


def test_the_versions_of_a_peer_are_those_of_its_environment(monkeypatch):
    monkeypatch.setattr(peers, "python_of", lambda environment: sys.executable)
    peer = peers.Peer("none", [], ["numpy", "attrs"])
    assert peer.versions() == {name: importlib.metadata.version(name) for name in ("numpy", "attrs")}


def test_an_answer_of_infinity_is_read():
    answer = {
        "object": "classify",
        "data": [[{"score": 0.9, "label": "1"}, {"score": 0.1, "label": "0"}]],
        "model": "x",
    }
    assert CLASSIFY.scores(answer)[0] == {"score": 0.9, "label": "1"}
    assert CLASSIFY.asked("a good film")["input"] == ["a good film"]


def test_other_labels_are_not_reported():
    ours, theirs = Heard(1, [0.1], ["1"]), Heard(1, [0.1], ["0"])
    serving._check({("onion", 1): [ours], ("onion, int8", 1): [theirs]})
    with pytest.raises(SystemExit, match="transformers at 8 callers gives 1 other labels"):
        serving._check({("onion", 1): [ours], ("transformers", 8): [theirs]})


def test_figures_of_a_round():
    found = [Heard(2.0, [0.3, 0.1, 0.2, 0.2], []), Heard(1.0, [0.1] * 4, [])]
    figures = serving._figures("onion", 8, found, [0.4, 0.2], 4)
    assert [figure.what.partition(":")[0] for figure in figures] == [
        "calls a second", "median wait", "99th percentile", "processor time a call",
    ]  # fmt: skip
    assert [list(map(float, figure.values)) for figure in figures] == [
        [2, 4], pytest.approx([200, 100]), pytest.approx([300, 100]), pytest.approx([100, 50]),
    ]  # fmt: skip
