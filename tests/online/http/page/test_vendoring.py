"""The libraries of the pages: fetched by ``make web-assets``, known by their hashes."""

import hashlib
import io
import re
import subprocess
import sys
import tarfile

import pytest

from scripts import web_assets
from tests.paths import ROOT


def archive(folder, files):
    """A package as npm packs it."""
    path = folder / "package-1.tgz"
    with tarfile.open(path, "w:gz") as package:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            package.addfile(member, io.BytesIO(content))
    return path


def test_a_package_with_another_hash_is_refused(tmp_path):
    path = archive(tmp_path, {"package/a.js": b"1"})
    digest = web_assets.CHARTS.integrity.removeprefix("sha512-")
    with pytest.raises(SystemExit, match=rf"package-1\.tgz is not what is pinned(?s:.*){re.escape(digest)}") as refused:
        web_assets.checked(path, web_assets.CHARTS.integrity)
    found = str(refused.value).rsplit(" ", 1)[1]
    assert found != web_assets.CHARTS.integrity
    assert web_assets.checked(path, found) == path


def test_only_the_listed_files_are_unpacked_and_complete_afterwards(tmp_path):
    taken = {"package/dist/a.js": b"1", "package/LICENSE": b"3"}
    path = archive(tmp_path, {**taken, "package/../../evil": b"2"})
    files = {name: hashlib.sha256(content).hexdigest() for name, content in taken.items()}
    vendor = tmp_path / "vendor"
    assert not web_assets.complete(vendor, files)
    web_assets.unpack(path, vendor, files)
    assert sorted(file.name for file in vendor.iterdir()) == ["LICENSE", "a.js"]
    assert web_assets.complete(vendor, files)
    (vendor / "a.js").write_bytes(b"another")
    assert not web_assets.complete(vendor, files)


def test_without_npm_the_error_states_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"npm is not on PATH; install Node\.js"):
        web_assets.packed(tmp_path, web_assets.CHARTS.name)


def test_the_message_of_npm_is_passed_on_when_it_fails(tmp_path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no such registry')\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"npm pack uplot@[\d.]+ failed \(exit status 1\):\nno such registry"):
        web_assets.packed(tmp_path, web_assets.CHARTS.name)


def test_nothing_is_fetched_when_it_is_there(tmp_path):
    if not all(web_assets.complete(package.vendor, package.files) for package in web_assets.PACKAGES):
        pytest.skip("a library is not there (make web-assets)")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "web_assets.py"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split(": ")[1] for line in done.stdout.splitlines()] == [
        f"{package.name} is there" for package in web_assets.PACKAGES
    ]
