"""Attachments: kept once under their hash, durable before they are named, never handed out altered."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.errors import AttachmentMissing, StoreCorrupt, StoreFull, StoreLink
from ledger.stores.blobs import FolderBlobs, MemoryBlobs
from tests.stores.support import ROOT, Failing, Recorded, error


@pytest.fixture(params=["memory", "folder"])
def blobs(request, tmp_path):
    """Return an empty place for attachments of each kind."""
    return MemoryBlobs() if request.param == "memory" else FolderBlobs(str(tmp_path / "s"))


@pytest.mark.parametrize("content", [b"", b"abc", os.urandom(3_000_000)])
def test_put_and_get(blobs, content):
    """Bytes come back equal, given whole or as a stream, under the name of their hash."""
    name = hashlib.sha256(content).hexdigest()

    assert blobs.put(content) == (name, len(content))
    assert blobs.put(io.BytesIO(content)) == (name, len(content))

    assert blobs.get(name) == content
    with blobs.open(name) as stream:
        assert stream.read(2) + stream.read() == content
    assert blobs.has(name)


def test_missing(blobs):
    """Bytes that are not there are missing, and so is whatever is no hash."""
    for name in ("0" * 64, "../../etc/passwd", "", "A" * 64, "x" * 1000):
        with pytest.raises(AttachmentMissing):
            blobs.get(name)
        with pytest.raises(AttachmentMissing):
            blobs.open(name)
        assert not blobs.has(name)


def test_missing_leaves_nothing_half_made(tmp_path):
    """Asking for bytes that are not there says nothing but that, in a Python that tells all."""
    code = (
        "import sys\nfrom ledger.errors import AttachmentMissing\n"
        "from ledger.stores.blobs import FolderBlobs\n"
        "try:\n    FolderBlobs(sys.argv[1]).open('0' * 64)\nexcept AttachmentMissing:\n    pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", code, str(tmp_path / "s")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_where_they_lie(tmp_path):
    """The bytes are in attachments/<first 2 hex>/<sha256>, alone, flushed, and their folders too."""
    calls = Recorded()
    name, _ = FolderBlobs(str(tmp_path / "s"), calls=calls).put(b"abc")

    place = tmp_path / "s" / "attachments"
    files = [str(p.relative_to(place)) for p in place.rglob("*") if p.is_file()]
    assert files == [f"{name[:2]}/{name}"]
    flushed = [call[1] for call in calls.calls if call[0] == "flush_folder"]
    for folder in (tmp_path, tmp_path / "s", place, place / name[:2]):
        assert str(folder) in flushed
    assert calls.calls.index(("flush",)) < len(calls.calls) - 1
    assert calls.calls[-1] == ("flush_folder", str(place / name[:2]))


def test_a_folder_is_made_durable_once(tmp_path):
    """A folder that stood there when its name was flushed is not flushed again; one that is made anew is."""
    calls = Recorded()
    blobs = FolderBlobs(str(tmp_path / "s"), calls=calls)
    same = [data for n in range(2000) if is_on_shelf(data := b"%d" % n, "aa")][:4]

    def flushed(data: bytes) -> list[str]:
        calls.calls.clear()
        blobs.put(data)
        found = [Path(call[1]) for call in calls.calls if call[0] == "flush_folder"]
        return [str(path.relative_to(tmp_path)) for path in found]

    shelf = "s/attachments/aa"
    assert flushed(same[0]) == [".", "s", "s/attachments", shelf]
    assert flushed(same[1]) == [
        "s",
        "s/attachments",
        shelf,
    ]  # Others might have made them, and died.
    assert flushed(same[2]) == [shelf]

    shutil.rmtree(tmp_path / "s")

    assert flushed(same[3]) == [".", "s", "s/attachments", shelf]


def is_on_shelf(data: bytes, shelf: str) -> bool:
    return hashlib.sha256(data).hexdigest().startswith(shelf)


def test_altered_bytes_are_not_handed_out(tmp_path):
    """A file whose bytes are not those it is named after is reported; putting them again mends it."""
    blobs = FolderBlobs(str(tmp_path))
    name, _ = blobs.put(b"abc" * 1000)
    path = tmp_path / "attachments" / name[:2] / name
    for data in (b"abd" + b"abc" * 999, b"", b"abc" * 1001):
        path.write_bytes(data)
        with pytest.raises(StoreCorrupt):
            blobs.get(name)
        with blobs.open(name) as stream, pytest.raises(StoreCorrupt):
            list(iter(lambda stream=stream: stream.read(100), b""))

    blobs.put(b"abc" * 1000)

    assert blobs.get(name) == b"abc" * 1000


def test_a_link_is_not_followed(tmp_path):
    """A link or a fifo at the place of an attachment is refused."""
    blobs = FolderBlobs(str(tmp_path))
    name, _ = blobs.put(b"abc")
    path = tmp_path / "attachments" / name[:2] / name
    victim = tmp_path / "victim"
    os.rename(path, victim)
    path.symlink_to(victim)
    with pytest.raises(StoreLink):
        blobs.get(name)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreLink):
        blobs.get(name)

    blobs.put(b"abc")

    assert blobs.get(name) == b"abc"
    assert victim.read_bytes() == b"abc"


@pytest.mark.parametrize("call", ["write", "flush"])
def test_a_failure_leaves_nothing(tmp_path, call):
    """When the bytes cannot be written or flushed, nothing is left, and the next try works."""
    calls = Failing()
    blobs = FolderBlobs(str(tmp_path), calls=calls)
    calls.fail[call] = [error(errno.ENOSPC)]

    with pytest.raises(StoreFull):
        blobs.put(b"abc")

    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    name, _ = blobs.put(b"abc")
    assert blobs.get(name) == b"abc"
