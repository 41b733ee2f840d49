"""Other users of the machine, modes and umasks: what is refused, what is told, what others can see."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ledger
from ledger.errors import StoreDenied
from ledger.stores.folder import FolderStore
from ledger.stores.sql.store import SQLStore
from tests.stores.support import foreign, log_path, run, stop, turns

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="giving files to other users takes root")
ALICE, BOB = 65532, 65533

AS = """
os.setgroups([]); os.setegid(int(sys.argv[2])); os.seteuid(int(sys.argv[2]))
from ledger.errors import LedgerError
def code(work):
    try:
        return str(work())
    except LedgerError as error:
        return error.code
store = FolderStore(folder)
"""

LOADED = """
import ledger
chat = ledger.open("c", store=folder + "/../loaded")
chat.forget(chat.record("a", "b"))
ledger.catalog.of(folder + "/../loaded").search("a")
"""
"""All that is needed, loaded before: Python itself may be out of another user's reach."""


def within_reach(place: Path) -> Path:
    """Let every user pass through the folders above a place."""
    for above in (place, *place.parents):
        if above.stat().st_uid == os.geteuid() and above != above.parent:
            above.chmod(above.stat().st_mode | 0o011)
    return place


def given_to(user: int, folder: Path) -> None:
    """Make a user the owner of a folder and all in it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_made_is_its_owners_only(tmp_path, umask):
    """Every folder is 0700 and every file 0600, whatever the umask: logs, locks, pieces, attachments, exports."""
    said = run(
        f"""
        os.umask({umask})
        store = FolderStore(folder + "/deep/er")
        store.append("c", [stop("a")])
        with open(folder + "/deep/er/conversations/c.jsonl", "ab") as file:
            file.write(b"torn")
        store.append("c", [stop("b")])
        store.adopt("d", store.raw("c"))
        store.blobs.put(b"abc")
        from pathlib import Path
        from ledger.cli.output import write_out
        write_out("x", Path(folder) / "export")
        for path in sorted(Path(folder).rglob("*")):
            say(f"{{path.name}} {{'d' if path.is_dir() else 'f'}} {{path.stat().st_mode & 0o777:o}}")
        """,
        tmp_path,
    )

    modes = {(line.split()[1], line.split()[2]) for line in said.splitlines()}
    assert modes == {("d", "700"), ("f", "600")}
    names = {line.split()[0] for line in said.splitlines()}
    assert names >= {"deep", "er", "c.jsonl", "c.lock", "c.torn-1", "d.jsonl", "export"}


@AS_ROOT
def test_a_folder_of_another_user_is_refused(tmp_path):
    """Neither reading nor appending trusts a folder of somebody else, though its modes would allow it."""
    FolderStore(tmp_path / "s").append("c", [stop("a")])
    FolderStore(tmp_path / "s").blobs.put(b"abc")
    for path in (tmp_path / "s", *(tmp_path / "s").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o666)
    given_to(ALICE, within_reach(tmp_path) / "s")

    said = run(
        AS
        + """
say(code(lambda: store.read("c")))
say(code(lambda: store.append("c", [stop("b")])))
say(code(store.conversations))
say(code(lambda: store.verify("c")))
say(code(lambda: store.blobs.put(b"x")))
""",
        tmp_path / "s",
        BOB,
    )

    assert said.split() == ["store-denied"] * 5


@AS_ROOT
@pytest.mark.parametrize("planted", ["conversations", "attachments", "c.jsonl", "c.lock"])
def test_what_another_user_planted_in_a_shared_place_is_refused(tmp_path, planted):
    """Where everybody may make files, as in /tmp, what another user put at the store's names is not used."""
    place = within_reach(tmp_path) / "shared"
    conversations = place / "conversations"
    conversations.mkdir(parents=True)
    path = place / planted if "." not in planted else conversations / planted
    if planted.startswith("c."):
        path.write_bytes(foreign("planted", 1))
        path.chmod(0o666)
    else:
        path.mkdir(exist_ok=True)
    for folder in (place, conversations):
        folder.chmod(0o1777)
    path.chmod(0o777 if path.is_dir() else 0o666)
    os.chown(path, ALICE, ALICE)

    said = run(
        AS
        + 'say(code(lambda: store.append("c", [stop("b")])))\nsay(code(lambda: store.blobs.put(b"x") and 1))',
        place,
        BOB,
    )

    denied = said.split()
    assert denied[planted == "attachments"] == "store-denied"
    if path.is_file():
        assert path.read_bytes() == foreign("planted", 1)


@AS_ROOT
def test_a_store_below_a_shared_place_is_used(tmp_path):
    """A store of one's own below a place like /tmp works."""
    place = within_reach(tmp_path) / "shared"
    place.mkdir()
    place.chmod(0o1777)

    said = run(
        AS + 'say(code(lambda: int(store.append("c", [stop("b")]))))\nsay(os.stat(folder).st_uid)',
        place / "mine",
        BOB,
    )

    assert said.split() == ["1", str(BOB)]


@AS_ROOT
def test_a_file_that_may_only_be_read_is_read(tmp_path):
    """A log of this user without the right to write reads; appending says store-denied and changes nothing."""
    FolderStore(tmp_path / "s").append("c", [stop("a")])
    given_to(BOB, within_reach(tmp_path) / "s")
    log_path(tmp_path / "s").chmod(0o400)

    said = run(
        AS
        + 'say(len(store.read("c")))\nsay(code(lambda: store.append("c", [stop("b")])))\nsay(len(store.read("c")))',
        tmp_path / "s",
        BOB,
    )

    assert said.split() == ["1", "store-denied", "1"]


def test_a_folder_that_everybody_may_write_to_keeps_no_attachments(tmp_path):
    """Attachments are refused where conversations are: others could put other bytes there."""
    store = FolderStore(tmp_path / "s")
    name, _ = store.blobs.put(b"abc")
    for folder in ("attachments", f"attachments/{name[:2]}"):
        (tmp_path / "s" / folder).chmod(0o777)
        for work in (lambda: store.blobs.put(b"abc"), lambda: store.blobs.get(name)):
            with pytest.raises(StoreDenied, match="everybody may write"):
                work()
        (tmp_path / "s" / folder).chmod(0o700)
    assert store.blobs.get(name) == b"abc"


def test_wide_modes_are_reported_and_left_alone(tmp_path):
    """`verify` names files that others may read or write; nothing tightens them in silence."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    assert store.verify("c").wide == []
    log_path(tmp_path).chmod(0o644)
    log_path(tmp_path).with_name("c.torn-1").write_bytes(b"x")
    log_path(tmp_path).with_name("c.torn-1").chmod(0o660)

    assert store.verify("c").wide == ["c.jsonl 0644", "c.torn-1 0660"]
    assert turns(store.read("c")) == ["a"]
    assert log_path(tmp_path).stat().st_mode & 0o777 == 0o644


@AS_ROOT
def test_verify_says_by_code_that_a_folder_cannot_be_listed(tmp_path):
    """Where the folder may be entered and not listed, verify names the missing right."""
    FolderStore(tmp_path / "s").append("c", [stop("a")])
    given_to(BOB, within_reach(tmp_path) / "s")
    (tmp_path / "s" / "conversations").chmod(0o300)

    said = run(
        AS + 'say(code(lambda: store.verify("c")))\nsay(len(store.read("c")))', tmp_path / "s", BOB
    )

    assert said.split() == ["store-denied", "1"]


@AS_ROOT
def test_a_log_that_cannot_be_read_is_not_left_out_of_the_list(tmp_path):
    """A conversation whose log this user may not read is listed, so that nobody takes it for gone."""
    FolderStore(tmp_path / "s").append("c", [stop("a")])
    given_to(BOB, within_reach(tmp_path) / "s")
    log_path(tmp_path / "s").chmod(0o000)

    said = run(
        AS + 'say(store.conversations())\nsay(code(lambda: store.read("c")))', tmp_path / "s", BOB
    )

    assert said.splitlines() == ["['c']", "store-denied"]


@AS_ROOT
@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_logs_that_may_not_be_looked_at_are_not_taken_for_none(tmp_path, mode):
    """Whatever is asked or removed where the folder may not be entered, nobody is told that nothing is there."""
    FolderStore(tmp_path / "s").append("c", [stop("a")])
    given_to(BOB, within_reach(tmp_path) / "s")
    (tmp_path / "s" / "conversations").chmod(mode)

    said = run(
        LOADED
        + AS
        + """
say(code(lambda: store.read("c")))
say(code(lambda: store.delete("c")))
say(code(lambda: store.erase("c", "a")))
say(code(lambda: store.raw("c")))
say(code(lambda: store.erasures("c")))
say(code(lambda: store.look("c")))
say(code(lambda: store.repair("c")))
say(code(lambda: store.wait("c", 0, 0)))
say(code(lambda: ledger.open("c", store=store).head))
""",
        tmp_path / "s",
        BOB,
    )

    assert said.split() == ["store-denied"] * 9
    (tmp_path / "s" / "conversations").chmod(0o700)
    assert turns(FolderStore(tmp_path / "s").read("c")) == ["a"]


@AS_ROOT
@pytest.mark.parametrize("closed", ["attachments", "shelf", "file"])
def test_attachments_that_may_not_be_looked_at_are_neither_missing_nor_damaged(tmp_path, closed):
    """Nobody can say that of them: store-denied, but where their names tell enough."""
    store = FolderStore(tmp_path / "s")
    name, _ = store.blobs.put(b"abc")
    ledger.open("c", store=store).record({"file": ledger.Attachment(b"abc", media_type="x/y")}, "b")
    given_to(BOB, within_reach(tmp_path) / "s")
    shelf = tmp_path / "s" / "attachments" / name[:2]
    path = {"attachments": shelf.parent, "shelf": shelf, "file": shelf / name}[closed]
    path.chmod(0o000)

    said = run(
        AS
        + f"""
say(code(lambda: store.blobs.get("{name}")))
say(code(lambda: store.verify("c").check_attachments(store.blobs)))
say(code(lambda: store.blobs.has("{name}")))
""",
        tmp_path / "s",
        BOB,
    )

    seen = "True" if closed == "file" else "store-denied"
    assert said.split() == ["store-denied", "store-denied", seen]


@AS_ROOT
def test_an_attachment_that_is_not_seen_any_more_is_not_taken_for_removed(tmp_path):
    """What this object put, in a folder that was closed since: a record that names it is not refused as if it went."""
    FolderStore(tmp_path / "s").append("c", [stop("a")])
    given_to(BOB, within_reach(tmp_path) / "s")

    said = run(
        AS
        + """
name, _ = store.blobs.put(b"abc")
os.chmod(folder + "/attachments", 0)
say(code(lambda: store.blobs.lost([name])))
os.chmod(folder + "/attachments", 0o700)
say(code(lambda: store.blobs.lost([name])))
""",
        tmp_path / "s",
        BOB,
    )

    assert said.split() == ["store-denied", "[]"]


@AS_ROOT
def test_an_index_that_may_not_be_read_goes_with_what_it_holds_of_a_forgotten_turn(tmp_path):
    """Nobody can take one turn out of it, so all of it is removed: the folder is the user's own."""
    chat = ledger.open("c", store=tmp_path / "s")
    turn = chat.record("a secret", "b").id
    assert len(ledger.catalog.of(tmp_path / "s").search("secret")) == 1
    given_to(BOB, within_reach(tmp_path) / "s")
    (tmp_path / "s" / "catalog.sqlite").chmod(0o000)

    said = run(
        LOADED + AS + f'say(code(lambda: bool(ledger.open("c", store=folder).forget("{turn}"))))',
        tmp_path / "s",
        BOB,
    )

    assert said.split() == ["True"]
    assert not (tmp_path / "s" / "catalog.sqlite").exists()


@AS_ROOT
@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_a_database_that_may_not_be_looked_at_is_not_taken_for_none(tmp_path, mode):
    """In a folder that may not be entered: neither is it empty, nor is one made."""
    place = tmp_path / "in"
    place.mkdir()
    url = f"sqlite:///{place}/s.db"
    with SQLStore(url) as made:
        made.append("c", [stop("a")])
    given_to(BOB, within_reach(tmp_path) / "in")

    said = run(
        LOADED
        + f"""
from ledger.stores.sql.store import SQLStore
other = SQLStore("{url}")
"""
        + AS
        + f"""
say(code(lambda: other.read("c")[0]["turn"]))
os.chmod("{place}", {mode})
store = SQLStore("{url}", lock_timeout_s=31)
for each in (store, other):
    say(code(lambda: each.conversations()))
    say(code(lambda: each.read("c")))
    say(code(lambda: each.verify("c")))
    say(code(lambda: each.delete("c")))
    say(code(lambda: each.append("c", [stop("b")])))
    say(code(lambda: ledger.catalog.of(each).search("x")))
""",
        place,
        BOB,
    )

    assert said.split() == ["a", *["store-denied"] * 12]
    place.chmod(0o700)
    with SQLStore(url) as there:
        assert turns(there.read("c")) == ["a"]
