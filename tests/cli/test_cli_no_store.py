"""Commands asked of a store that is not there, and of one that is there and empty."""

import json
import os

import pytest

from tests import postgres

ASK = {
    "list": ["list"],
    "waiting": ["list", "--waiting"],
    "search": ["search", "parcel"],
    "usage": ["usage"],
}
WHOLE = {
    "verify": ["verify"],
    "export": ["export", "--all"],
    "rated": ["rated"],
    "sweep": ["sweep"],
}
ONE = {
    "tree": ["tree", "alex"],
    "log": ["log", "alex"],
    "verify-one": ["verify", "alex"],
    "export-one": ["export", "alex"],
    "rate": ["rate", "alex", "1", "3"],
    "delete": ["delete", "alex", "--yes"],
    "repair": ["repair", "alex"],
    "abandon": ["abandon", "alex", "1"],
}


@pytest.mark.parametrize("command", [*ASK.values(), *WHOLE.values(), *ONE.values()], ids=" ".join)
def test_a_named_store_that_is_not_there_is_an_error(cli, tmp_path, command):
    """It ends with 3, names the place and the next step, prints nothing, and makes nothing."""
    code, out, error = cli(*command, "--store", str(tmp_path / "typo"))

    assert (code, out) == (3, "")
    assert f"there is no store in {tmp_path / 'typo'}: is the name right" in error
    assert error.endswith("[store-missing]\n")
    assert os.listdir(tmp_path) == []


def test_the_environment_names_a_store_too(cli, tmp_path):
    """What TURN_LEDGER_STORE names has to be there; with --json the error is an object."""
    code, out, error = cli("list", "--json")

    assert (code, out) == (3, "")
    assert json.loads(error)["error"]["code"] == "store-missing"
    assert str(tmp_path / "store") in json.loads(error)["error"]["message"]


def test_a_folder_in_which_nothing_was_written_is_no_store(cli, tmp_path):
    """So is the empty folder on which a disk should be mounted."""
    (tmp_path / "store").mkdir(mode=0o700)
    assert cli("verify")[0] == 3
    assert cli("add", "alex", "hi", "hello")[0] == 0
    assert cli("verify")[0] == 0


@pytest.mark.parametrize("command", [*ASK.values(), *WHOLE.values()], ids=" ".join)
def test_an_empty_store_is_no_error(cli, tmp_path, command):
    """A store that is there and holds no conversation is answered as such."""
    assert cli("add", "alex", "hi", "hello")[0] == 0
    assert cli("delete", "alex", "--yes")[0] == 0

    assert cli(*command)[0] == 0


@pytest.mark.parametrize("command", ASK.values(), ids=" ".join)
def test_who_names_no_store_and_wrote_none_is_answered(cli, tmp_path, monkeypatch, command):
    """The default store, before anything was written, is asked as an empty one, and not made."""
    monkeypatch.delenv("TURN_LEDGER_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    code, _, error = cli(*command)

    assert (code, error, os.listdir(tmp_path)) == (0, "", [])


@pytest.mark.parametrize("command", WHOLE.values(), ids=" ".join)
def test_what_takes_the_whole_store_needs_one(cli, tmp_path, monkeypatch, command):
    """A check or backup of a default store that is not there fails: who runs it may have another home."""
    monkeypatch.delenv("TURN_LEDGER_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    code, out, error = cli(*command)

    assert (code, out) == (3, "")
    assert f"no store in {tmp_path / 'turn-ledger'}" in error


def test_a_database_without_the_tables_is_no_store(cli):
    """So it is in PostgreSQL, until something is written; its password is not told."""
    url = postgres.fresh_url()
    code, out, error = cli("verify", "--store", url)
    assert (code, out) == (3, "")
    assert "no store in postgresql://" in error
    assert cli("add", "alex", "hi", "hello", "--store", url)[0] == 0
    assert cli("verify", "--store", url)[0] == 0
