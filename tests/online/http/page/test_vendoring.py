"""The chart library of the page: fetched by ``make page``, known by its hashes."""

import hashlib
import importlib.util
import io
import re
import subprocess
import sys
import tarfile

import pytest

from tests.paths import ROOT

SCRIPT = ROOT / "scripts" / "page.py"


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def archive(folder, files):
    """A package as npm packs it."""
    path = folder / "package-1.tgz"
    with tarfile.open(path, "w:gz") as package:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            package.addfile(member, io.BytesIO(content))
    return path


def test_a_package_with_another_hash_is_refused_and_both_are_said(page, tmp_path):
    path = archive(tmp_path, {"package/a.js": b"1"})
    digest = page.INTEGRITY.removeprefix("sha512-")
    with pytest.raises(SystemExit, match=rf"package-1\.tgz is not what is pinned(?s:.*){re.escape(digest)}") as refused:
        page.checked(path)
    found = str(refused.value).rsplit(" ", 1)[1]
    assert found != page.INTEGRITY
    assert page.checked(path, found) == path


def test_only_the_files_that_are_taken_are_unpacked_and_known_afterwards(page, tmp_path):
    taken = {"package/dist/a.js": b"1", "package/LICENSE": b"3"}
    path = archive(tmp_path, {**taken, "package/../../evil": b"2"})
    files = {name: hashlib.sha256(content).hexdigest() for name, content in taken.items()}
    vendor = tmp_path / "vendor"
    assert not page.complete(vendor, files)
    page.unpack(path, vendor, files)
    assert sorted(file.name for file in vendor.iterdir()) == ["LICENSE", "a.js"]
    assert page.complete(vendor, files)
    (vendor / "a.js").write_bytes(b"another")
    assert not page.complete(vendor, files)


def test_without_npm_it_says_what_to_do(page, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"npm is not on PATH; install Node\.js"):
        page.packed(tmp_path)


def test_npms_own_words_are_passed_on_when_it_fails(page, tmp_path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no such registry')\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"npm pack uplot@[\d.]+ failed \(exit status 1\):\nno such registry"):
        page.packed(tmp_path)


def test_nothing_is_fetched_when_it_is_there(page, tmp_path):
    if not page.complete(page.VENDOR):
        pytest.skip("the chart library is not there (make page)")
    done = subprocess.run(
        [sys.executable, SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith(f"{page.PACKAGE} is there\n")
