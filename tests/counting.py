"""What is counted where a clock would tell of the machine."""

import gc
import sys


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
