"""Checkpoints of items that had other names; a whole run goes on from one in test_museum.py."""

from onion.checkpointing.format_1 import renamed


def test_classes_default_names_and_what_refers_to_them_are_those_of_now():
    onion = {
        "record": {"class": "Record", "in": None},
        "control-2": {"class": "Control", "in": "record"},
        "mine": {"class": "RaisedRate", "in": None, "act": "ProgressiveTest.of.<locals>.<lambda>"},
        "tester": {
            "class": "Tester",
            "runner": {"drift_watch": {"class": "DriftWatch", "in": None}},
            "more": ["record"],
        },
    }
    run, items = renamed({"onion": onion, "loss": 0.5}, {"record": {"offset": 3}, "control-2": {}, "mine": {}})
    assert run == {
        "loss": 0.5,
        "onion": {
            "journal": {"class": "Journal", "in": None},
            "control_server-2": {"class": "ControlServer", "in": "journal"},
            "mine": {"class": "LearningRateBoost", "in": None, "act": "ProgressiveValidation.of.<locals>.<lambda>"},
            "tester": {
                "class": "Tester",
                "runner": {"drift_detector": {"class": "DriftDetector", "in": None}},
                "more": ["record"],
            },
        },
    }
    assert items == {"journal": {"offset": 3}, "control_server-2": {}, "mine": {}}


def test_what_is_no_description_stays_as_it_is():
    for run, items in (({"onion": [1, None]}, {"record": {}}), ({}, {})):
        assert renamed(run, items) == (run, items)
