"""What ``make portable`` does where there is no emulator, or an emulated process dies, fails or hangs."""

import os
import signal
import sys
from pathlib import Path

import pytest

from scripts.portable import __main__ as portable

SKYLAKE = "avx512f avx512cd avx512bw avx512dq avx512vl"


@pytest.fixture
def watched(tmp_path):
    """Watch Python code to its end; return the end, the steps that were told, and what stands in standard error."""

    def run(code, limit=600.0):
        told, errors = [], tmp_path / "errors.txt"
        command = [sys.executable, "-u", "-c", code]
        end = portable.watch(command, os.environ, tmp_path, errors, limit, lambda *each: told.append(each))
        assert all(seconds >= 0 for _, seconds in told)
        return end, [step for step, _ in told], errors.read_text()

    return run


@pytest.fixture
def on_linux(monkeypatch):
    """Take this machine for Linux on x86-64."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(portable.platform, "machine", lambda: "x86_64")


def test_every_step_that_ends_is_told_and_one_that_hangs_is_ended_and_named(watched):
    end, told, _ = watched("print('one'); print('two')")
    assert (told, end.complaint) == (["started", "one", "two"], None)
    end, told, _ = watched("import signal\nwhile True: signal.pause()", limit=0.1)
    assert (end.code, end.late, told) == (-signal.SIGKILL, True, [])
    assert end.complaint == "'started' hangs: it did not end in time"


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("import os\nos.kill(os.getpid(), 4)", "'two' was ended by signal 4 (Illegal instruction): the processor "),
        ("import os\nos.kill(os.getpid(), 11)", "'two' was ended by signal 11 (Segmentation fault)"),
        ("import sys\nsys.exit('wrong')", "'two' failed with exit status 1"),
    ],
)
def test_the_step_that_fails_is_named(watched, code, complaint):
    end, told, errors = watched(f"print('one'); print('two')\n{code}")
    assert told == ["started", "one"]
    assert end.complaint.startswith(complaint)
    assert errors == ("wrong\n" if "exit" in code else "")


@pytest.mark.parametrize(("variable", "status"), [("", 77), ("true", 1)])
def test_without_an_emulator_that_is_told(on_linux, monkeypatch, tmp_path, capsys, variable, status):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", variable)
    assert portable.main(["emulated"]) == status
    output, errors = capsys.readouterr()
    assert output.startswith("emulated: FAILED, " if variable else "emulated: NOT RUN, ")
    assert errors.startswith("nothing was run on a processor without AVX-512: qemu-x86_64 is not installed; ")


@pytest.mark.parametrize(
    ("flags", "parts"),
    [("avx2", ["emulated"]), (f"avx2 {SKYLAKE}", ["native", "emulated"]), ("sse2", ["native", "emulated"])],
)
def test_what_make_test_has_run_is_not_run_again(tmp_path, capsys, flags, parts):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"vendor_id : AuthenticAMD\nflags : fpu {flags}\n")
    assert list(portable._default_parts(cpuinfo)) == parts
    assert ("native: left out" in capsys.readouterr().out) == (parts == ["emulated"])


def test_another_system_is_told_that_the_emulator_is_none_for_it(monkeypatch):
    monkeypatch.setattr(portable.platform, "machine", lambda: "aarch64")
    with pytest.raises(portable.NoEmulatorError, match="for Linux on x86-64 only"):
        portable.emulated("-c", "pass")


def test_an_emulated_process_that_dies_is_a_failure_of_both_families(on_linux, monkeypatch, tmp_path, capfd):
    emulator = tmp_path / "qemu-x86_64"
    emulator.write_text('#!/bin/sh\necho "Paddle loaded"\necho "$@" >&2\nkill -ILL $$\n')
    emulator.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert portable.main(["emulated"]) == 1
    lines = capfd.readouterr().out.splitlines()
    for family in ("bert", "ernie"):
        at = next(place for place, line in enumerate(lines) if line.startswith(f"{family:8}FAILED"))
        assert "'Paddle loaded' was ended by signal 4" in lines[at]
        assert lines[at + 1].startswith(f"-cpu max {sys.executable} -m scripts.portable.journey ")
    assert lines[-1].startswith("emulated: FAILED, ")


def test_what_was_chosen_for_this_processor_is_chosen_again(monkeypatch, tmp_path):
    from onion.host.math_library import kernels_for

    for name in portable.CHOSEN:
        monkeypatch.setenv(name, "7")
    described, limited = portable.described(tmp_path), portable.limited(tmp_path)
    assert not described.keys() & set(portable.CHOSEN)
    assert {name: limited[name] for name in portable.CHOSEN} == {
        "MKL_DEBUG_CPU_TYPE": "5",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }
    assert kernels_for(Path(described["ONION_CPUINFO"])) == "5"
