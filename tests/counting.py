"""What is counted where a clock would tell of the machine."""

import gc
import sys
from collections import Counter


def python_calls(function):
    """Count the Python function calls (and resumed generators) that a function makes."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    gc.disable()  # or it calls back for what other tests have left
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def calls_in(folder, function):
    """Count the calls (and resumed generators) of Python functions of a folder, by the name of the function."""
    calls = Counter()

    def count(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(folder)):
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls
