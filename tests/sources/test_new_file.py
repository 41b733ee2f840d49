"""A new file: whole or not at all, and never in the place of another."""

import errno
import os

import pytest

from ledger.sources import new_file as module
from ledger.sources.new_file import new_file


def written_meanwhile(path):
    """Write a file while somebody else takes its name."""
    with new_file(path) as file:
        file.write(b"ours")
        path.write_bytes(b"theirs")


def test_it_is_there_when_it_is_whole(tmp_path):
    """Nothing has the name until the block ends; then all of it is there, for its owner only."""
    path = tmp_path / "out.json"
    with new_file(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and half")

    assert path.read_bytes() == b"half and half"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["out.json"]


def test_what_raises_leaves_nothing(tmp_path):
    """An error inside leaves no file under any name."""
    with pytest.raises(ZeroDivisionError), new_file(tmp_path / "out") as file:
        file.write(bytes(1 // (file.write(b"x") - 1)))

    assert os.listdir(tmp_path) == []


def test_another_file_stays(tmp_path):
    """What has the name is never written over: not one that was there, nor a link, nor one that came meanwhile."""
    path = tmp_path / "out"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError), new_file(path):
        raise AssertionError
    path.unlink()
    with pytest.raises(FileExistsError):
        written_meanwhile(path)

    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["out"]


def test_a_file_system_without_second_names(tmp_path, monkeypatch):
    """Where a file can have one name alone it is moved, and still not over another."""

    def refused(*_):
        raise OSError(errno.EPERM, "no")

    monkeypatch.setattr(module.os, "link", refused)
    with new_file(tmp_path / "out") as file:
        file.write(b"x")
    with pytest.raises(FileExistsError):
        written_meanwhile(tmp_path / "late")

    assert (tmp_path / "out").read_bytes() == b"x"
    assert (tmp_path / "late").read_bytes() == b"theirs"
