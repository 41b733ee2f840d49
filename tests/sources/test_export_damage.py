"""Exporting what is damaged: it is left out and told by name, and hides nothing else."""

import json

import pytest

import ledger
from ledger import errors
from ledger.sources import exporting

WHY = {"missing": "are not in the store", "altered": "were altered"}


@pytest.fixture
def store(tmp_path):
    return ledger.FolderStore(tmp_path / "store")


@pytest.fixture(params=["missing", "altered"])
def damage(request, store, tmp_path):
    """Three conversations with an image each; the bytes of that of `b` are gone, or others."""
    for id in ("a", "b", "c"):
        image = ledger.Attachment(id.encode() * 9, name=f"{id}.png")
        ledger.open(id, store=store).record({"message": ["look", image]}, f"seen {id}")
    (sha256,) = [each.sha256 for each in ledger.open("b", store=store).attachments()]
    path = tmp_path / "store" / "attachments" / sha256[:2] / sha256
    if request.param == "missing":
        path.unlink()
    else:
        path.chmod(0o600)
        path.write_bytes(b"evil")
    return f"b: attachment b.png left out, its bytes {WHY[request.param]}"


@pytest.mark.parametrize("format", ["json", "openai-chat", "anthropic", "open-webui"])
def test_an_attachment_that_is_not_as_it_was_kept_is_left_out(store, damage, format):
    """It is named once, with its conversation; everything else is exported, its own conversation too."""
    made = ledger.export(store, format)
    text = b"".join(made).decode()

    assert [note for note in made.notes if "left out" in note] == [damage]
    assert (made.conversations, made.rows, made.failed) == (3, 3, {})
    assert all(f"seen {id}" in text for id in "abc")


@pytest.mark.parametrize("format", ["markdown", "sharegpt", "preferences"])
def test_formats_without_bytes_need_none(store, damage, format):
    """What says attachments by name, or not at all, is as if nothing was damaged."""
    made = ledger.export(store, format)

    assert b"".join(made) is not None
    assert not [note for note in made.notes if "its bytes" in note]


def test_a_conversation_as_json_warns(store, damage):
    """`export_json` has nothing to tell in, so it warns; the document is that of `export`."""
    chat = ledger.open("b", store=store)
    with pytest.warns(errors.LossWarning, match=damage):
        made = ledger.export_json(chat)

    assert json.loads(made)["attachments"] == {}
    assert made == b"".join(ledger.export(chat, "json"))


def test_rated_rows_name_attachments_and_need_no_bytes(store, damage):
    """So they are the same whatever became of the bytes."""
    ledger.open("b", store=store).head.rate(1)

    assert [row["conversation"] for row in ledger.rated(store)] == ["b"]


@pytest.mark.parametrize("format", sorted({*exporting.FORMATS} - {"json"}))
def test_a_conversation_that_cannot_be_read_hides_no_other(store, tmp_path, format):
    """Of several it is in `failed`, and what is made of the others is whole; alone it raises.

    As JSON the lines are exported as they are, damaged ones too.
    """
    for id in ("a", "b", "c"):
        ledger.open(id, store=store).record("q", f"said {id}").rate(1)
    log = tmp_path / "store" / "conversations" / "b.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"kind"', b'"kond"', 1))
    strict = ledger.FolderStore(tmp_path / "store", strict=True)
    made = ledger.export(strict, format)
    text = b"".join(made).decode()

    assert {"b": "store-corrupt"} == {id: error.code for id, error in made.failed.items()}
    if not format.startswith("preferences"):
        assert ["said a" in text, "said b" in text, "said c" in text] == [True, False, True]
    if format == "open-webui":
        assert len(json.loads(text)) == 2
    with pytest.raises(errors.StoreCorrupt):
        b"".join(ledger.export(ledger.open("b", store=strict), format))
