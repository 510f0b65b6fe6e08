"""scripts.serving_load: a short load with attackers beside it; wrong answers and heeded attacks are noticed."""

import argparse
import asyncio
import json
from collections import Counter
from types import SimpleNamespace

import httpx
import pytest

from scripts import serving_load
from scripts.serving_load import Load, alike, main

pytest.importorskip("onnxruntime")

FILMS = {"a film": {"label": "good", "probabilities": {"good": 0.9, "bad": 0.1}}}


@pytest.mark.slow
def test_nothing_is_lost_while_attackers_are_at_the_service(folders, capsys):
    words = [str(folders("classification")), "--requests", "60", "--callers", "3", "--reload-every", "1", "--hostile"]
    assert main([*words, "--leave-every", "10"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["rows"] >= 40
    assert (told["wrong_or_lost"], told["heeded"], told["status"]) == (0, 0, 0)
    assert told["hostile"]["wrong token"]["401"] > 0
    assert told["hostile"]["slow"]["begun"] > 0


@pytest.fixture
def load():
    given = argparse.Namespace(requests=1, seconds=None)
    return Load(SimpleNamespace(url="http://localhost"), FILMS, given)


@pytest.mark.parametrize(
    ("status", "body", "wrong"),
    [
        (200, {"predictions": [FILMS["a film"]]}, 0),
        (200, {"predictions": [{"label": "bad", "probabilities": {"good": 0.1, "bad": 0.9}}]}, 1),
        (200, {"predictions": []}, 1),
        (500, {"error": "x"}, 1),
        (429, {"error": "busy"}, 0),
    ],
)
def test_every_answer_is_held_against_its_own_text(status, body, wrong, load):
    load._check(["a film"], httpx.Response(status, json=body))
    assert len(load.wrong) == wrong
    assert load.refused == (status == 429)


def test_numbers_are_alike_but_for_rounding():
    assert alike({"a": [0.5]}, {"a": [0.5]})
    assert alike({"a": 0.50001}, {"a": 0.5})
    assert not alike({"a": 0.51}, {"a": 0.5})
    assert not alike({"a": 0.5, "b": 1}, {"a": 0.5})


def test_an_attack_that_is_heeded_is_an_error(folders, monkeypatch, capsys):
    def heeded(service, load):
        asyncio.run(load.run())
        return {"noise": Counter({"200": 1})}

    monkeypatch.setattr(serving_load, "under_attack", heeded)
    words = [str(folders("classification")), "--requests", "8", "--callers", "1", "--hostile", "--leave-every", "0"]
    assert main(words) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["heeded"] == 1
