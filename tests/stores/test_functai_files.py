"""One folder, two implementations: the other one's live reader, and its appends between ours."""

from __future__ import annotations

import pytest

from ledger.stores.folder import FolderStore
from tests.stores.support import Unflushed, check_seals, log_path, start, stop, turns

functai_stores = pytest.importorskip("functai.stores")


@pytest.fixture
def ours(tmp_path):
    """Return our store of a folder."""
    return FolderStore(tmp_path, calls=Unflushed())


@pytest.fixture
def theirs(tmp_path):
    """Return their store of the same folder."""
    return functai_stores.FolderStore(tmp_path)


def names(records) -> list:
    """Return the names in their records; None: what their reader skips."""
    return [record.get("turn") for record in records]


def test_each_reads_what_the_other_wrote(ours, theirs):
    """Records of both are read by both, in one order, at the same places; ours seal theirs."""
    assert ours.append("c", [stop("a"), stop("b")]) == 2
    assert theirs.append("c", [stop("d")], expect=2) == 3
    assert ours.append("c", [stop("e")], expect=3) == 4
    assert theirs.append("c", [stop("f")], expect=4) == 5

    assert turns(ours.read("c")) == names(theirs.read("c")) == ["a", "b", "d", "e", "f"]
    assert [r["seq"] for r in theirs.read("c")] == [1, 2, 3, 4, 5]
    report = ours.verify("c")
    assert report.counts == {"sealed": 3, "unsealed": 2}
    assert ours.conversations() == theirs.conversations() == ["c"]


def test_an_altered_line_of_theirs_is_noticed(ours, theirs, tmp_path):
    """Their line, once covered by our seal, is not handed out altered."""
    theirs.append("c", [stop("a")])
    ours.append("c", [stop("b")])
    data = log_path(tmp_path).read_bytes()
    assert data.count(b'"turn":"a"') == 1
    log_path(tmp_path).write_bytes(data.replace(b'"turn":"a"', b'"turn":"A"'))

    assert turns(FolderStore(tmp_path).read("c")) == [None, None]


def test_a_folder_of_theirs_is_continued(theirs, tmp_path):
    """A conversation that they began is read, continued and sealed by us, by count and position."""
    theirs.append("c", [stop(str(i)) for i in range(300)])
    ours = FolderStore(tmp_path)
    found = ours.read("c")
    assert found.position.incarnation == (found[0]["at"], None)

    assert ours.append("c", [stop("x")], expect=found.position) == 301
    assert names(theirs.read("c", 299)) == ["299", "x"]


def test_their_live_reader_survives_a_torn_tail(ours, theirs, tmp_path):
    """A reader of theirs that knows the log reads on after we cut a torn tail."""
    ours.append("c", [stop("a")])
    assert names(theirs.read("c")) == ["a"]
    with log_path(tmp_path).open("ab") as file:
        file.write(b'{"torn')
    assert names(theirs.read("c")) == ["a"]

    ours.append("c", [stop("b")])

    assert names(theirs.read("c")) == ["a", "b"]
    assert names(functai_stores.FolderStore(tmp_path).read("c")) == ["a", "b"]
    check_seals(log_path(tmp_path).read_bytes())


def test_their_live_reader_survives_a_void_batch(ours, theirs, tmp_path):
    """A reader of theirs that read part of a batch that was never finished stays at our places."""
    ours.append("c", [stop("a")])
    ours.append("c", [stop("x"), stop("y"), stop("z")])
    data = log_path(tmp_path).read_bytes()
    cut = data.index(b'"turn":"z"') + 5
    log_path(tmp_path).write_bytes(data[:cut])
    assert len(theirs.read("c")) == 3

    position = ours.append("c", [stop("b")])

    assert turns(ours.read("c")) == ["a", None, None, "b"]
    assert position == 4
    found = theirs.read("c")
    assert len(found) == 4
    assert found[3]["turn"] == "b"
    assert theirs.append("c", [stop("d")], expect=4) == 5
    assert turns(ours.read("c", 3)) == ["b", "d"]


def test_their_live_reader_after_delete(ours, theirs):
    """A reader of theirs sees that a conversation was deleted by us, and made anew."""
    ours.append("c", [stop("a"), stop("b")])
    assert len(theirs.read("c")) == 2
    ours.delete("c")
    assert theirs.read("c") == []
    ours.append("c", [stop("n")])

    assert names(theirs.read("c")) == ["n"]


def test_both_append_at_once(ours, tmp_path):
    """Processes of both append to one conversation at once; nothing is lost and nobody wins twice."""
    ours_code = """
        store = FolderStore(folder)
        for i in range(40):
            say(int(store.append("c", [stop(f"o{os.getpid()}-{i}")])))
        """
    theirs_code = """
        from functai.stores import FolderStore
        store = FolderStore(folder)
        for i in range(40):
            say(int(store.append("c", [stop(f"t{os.getpid()}-{i}")])))
        """
    processes = [start(code, tmp_path) for code in (ours_code, theirs_code) * 2]
    places = [int(p) for process in processes for p in process.communicate(timeout=60)[0].split()]

    assert sorted(places) == list(range(1, 161))
    records = ours.read("c")
    assert [record["seq"] for record in records] == list(range(1, 161))
    assert len(set(turns(records))) == 160
    assert ours.verify("c").counts == {"sealed": 80, "unsealed": 80}
