import gzip
import io
import shutil
import tarfile

import pytest

from onion.errors import WeightsError
from onion.models.downloads import archive as module
from onion.models.downloads.archive import unpack

FILES = {"ernie_config.json": b"{}", "vocab.txt": b"[PAD]\t0\n", "params/word_embedding": bytes(range(256)) * 8}


def member(name, **values):
    info = tarfile.TarInfo(name)
    for key, value in values.items():
        setattr(info, key, value)
    return info


def pack(path, files=FILES, *members, format=tarfile.GNU_FORMAT):
    """A real .tar.gz of files, and of members that no tool would write."""
    with tarfile.open(path, "w:gz", format=format) as packed:
        for name, content in files.items():
            packed.addfile(member(name, size=len(content)), io.BytesIO(content))
        for info in members:
            packed.addfile(info, io.BytesIO(bytes(info.size)))
    return path


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refused(tmp_path, archive):
    """The message about an archive that has put nothing beside its folder."""
    before = everything(tmp_path)
    with pytest.raises(WeightsError) as caught:
        unpack(archive, tmp_path / "out")
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert everything(tmp_path) == before
    assert str(archive) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_unpacks_files_and_folders(tmp_path, format):
    folder = unpack(pack(tmp_path / "a.tar.gz", format=format), tmp_path / "out")
    assert folder == tmp_path / "out"
    assert content(folder) == FILES


@pytest.mark.parametrize("wrap", ["ERNIE_stable-1.0.1/", "./wrapped/"])
def test_the_one_folder_around_everything_is_the_model(tmp_path, wrap):
    files = {wrap + name: data for name, data in FILES.items()}
    folder = unpack(pack(tmp_path / "a.tar.gz", files), tmp_path / "out")
    assert folder.parent == tmp_path / "out"
    assert content(folder) == FILES


def test_folders_may_stand_before_their_files_and_modes_are_not_heeded(tmp_path):
    files = {"a/b/vocab.txt": b"x", "c": b"y"}
    shut = [member("a", type=tarfile.DIRTYPE, mode=0), member("./", type=tarfile.DIRTYPE, mode=0)]
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        for info in shut:
            packed.addfile(info)
        for name, data in files.items():
            packed.addfile(member(name, size=len(data), mode=0o4000, uid=0), io.BytesIO(data))
    folder = unpack(path, tmp_path / "out")
    assert content(folder) == files
    assert not (folder / "c").stat().st_mode & 0o7000


@pytest.mark.parametrize(
    "name",
    ["../evil", "/onion-evil", "a/../../evil", "params/../../../evil", "..", "a\\..\\..\\evil", "C:evil", "//evil"],
)
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_paths_that_lead_out_are_refused(tmp_path, name, kind):
    archive = pack(tmp_path / "a.tar.gz", FILES, member(name, type=kind))
    assert "leads out of the archive's folder" in refused(tmp_path, archive)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE]
)
@pytest.mark.parametrize("target", ["/etc/passwd", "../..", "vocab.txt"])
def test_links_and_devices_are_refused(tmp_path, kind, target):
    archive = pack(tmp_path / "a.tar.gz", FILES, member("link", type=kind, linkname=target))
    assert "a link, a device or the like" in refused(tmp_path, archive)


def test_two_of_one_name_are_refused(tmp_path):
    assert "exists" in refused(tmp_path, pack(tmp_path / "a.tar.gz", FILES, member("vocab.txt", size=3)))
    assert "cannot unpack" in refused(tmp_path, pack(tmp_path / "b.tar.gz", FILES, member("vocab.txt/a", size=3)))


def test_too_many_files_and_too_many_bytes_are_refused(tmp_path, monkeypatch):
    archive = pack(tmp_path / "a.tar.gz")
    monkeypatch.setattr(module, "MAX_FILES", 2)
    assert "more than 2 files" in refused(tmp_path, archive)
    monkeypatch.undo()
    bomb = pack(tmp_path / "b.tar.gz", FILES, member("zeros", size=3 << 20))
    assert bomb.stat().st_size < 10_000
    monkeypatch.setattr(module, "MAX_BYTES", 1 << 20)
    assert "unpacks to more than 1048576 bytes" in refused(tmp_path, bomb)
    (tmp_path / "c.tar.gz").write_bytes(archive.read_bytes() + gzip.compress(bytes(2 << 20)))  # behind the end
    assert "unpacks to more than 1048576 bytes" in refused(tmp_path, tmp_path / "c.tar.gz")


def test_headers_that_claim_too_much_are_not_read_into_memory(tmp_path):
    header = member("././@PaxHeader", type=tarfile.XHDTYPE, size=1 << 34).tobuf(tarfile.GNU_FORMAT)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(header + bytes(1024)))
    assert "a header claims" in refused(tmp_path, path)


@pytest.mark.parametrize("count", [500, 2000])
@pytest.mark.parametrize(
    ("kind", "body"), [(tarfile.GNUTYPE_LONGNAME, b"abc\0"), (tarfile.XHDTYPE, b"12 path=abc\n")], ids=["gnu", "pax"]
)
def test_a_chain_of_headers_for_one_file_is_refused(tmp_path, kind, body, count):
    header = member("././@LongLink", type=kind, size=len(body)).tobuf(tarfile.GNU_FORMAT) + body.ljust(512, b"\0")
    path = pack(tmp_path / "a.tar.gz")
    path.write_bytes(gzip.compress(header * count + gzip.decompress(path.read_bytes())))
    assert "cannot unpack" in refused(tmp_path, path)
    path.write_bytes(gzip.compress(header * 3 + gzip.decompress(pack(path).read_bytes())))
    assert content(unpack(path, tmp_path / "out"))["abc"] == FILES["ernie_config.json"]


def flipped(data):
    return data[:-6] + bytes([data[-6] ^ 1]) + data[-5:]  # in gzip's checksum


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        *((lambda data, keep=keep: data[:keep], "cannot unpack") for keep in (0, 5, 100, -8, -1)),
        (flipped, "CRC"),
        (lambda data: b"not an archive", "Not a gzipped file"),
        (lambda data: gzip.compress(b"not a tar"), "cannot unpack"),
        (lambda data: gzip.compress(bytes(10240)), "contains no files"),
        (lambda data: gzip.compress(member("vocab.txt", size=5000).tobuf() + bytes(512)), "cannot unpack"),
    ],
    ids=[
        *(f"cut at {keep}" for keep in (0, 5, 100, -8, -1)),
        "bit",
        "no gzip",
        "no tar",
        "empty tar",
        "cut in the tar",
    ],
)
def test_damaged_archives_are_refused(tmp_path, damage, message):
    archive = pack(tmp_path / "a.tar.gz", {"vocab.txt": bytes(range(256)) * 40})
    archive.write_bytes(damage(archive.read_bytes()))
    assert message in refused(tmp_path, archive)


def test_no_such_archive_and_no_place(tmp_path):
    refused(tmp_path, tmp_path / "none.tar.gz")
    (tmp_path / "out").mkdir()
    with pytest.raises(WeightsError, match="File exists"):
        unpack(pack(tmp_path / "a.tar.gz"), tmp_path / "out")
