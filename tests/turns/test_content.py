"""Which fields may be kept, as the process and the program say it."""

import os
import subprocess
import sys
import threading

import pytest

import ledger
from ledger.errors import ContentRefused
from ledger.turns import content


class Silent:
    """A store that does not say whether it outlives the process."""


class Kept:
    """A store that outlives it."""

    persistent = True


class Memory:
    """A store that does not."""

    persistent = False


class Unsure:
    """A store that says it does not know."""

    persistent = None


@pytest.fixture(autouse=True)
def _lifted():
    yield
    ledger.keep({})


@pytest.mark.parametrize("process", [None, True, False])
@pytest.mark.parametrize("declared", [None, True, False])
@pytest.mark.parametrize("store", [Kept, Silent, Unsure, Memory])
def test_a_field_is_kept_when_neither_forbids_it(process, declared, store):
    """A forbidden field is refused wherever the store keeps it, or does not say that it does not."""
    ledger.keep({} if process is None else {"photo": process})
    said = {} if declared is None else {"photo": declared}

    if store is Memory or (process is not False and declared is not False):
        content.refuse(store(), ["message", "photo"], said)
    else:
        with pytest.raises(ContentRefused):
            content.refuse(store(), ["message", "photo"], said)


def test_the_refusal_names_the_fields_and_the_way_out():
    """The error has a code, the fields and the store's class, and says what to do."""
    ledger.keep({"photo": False, "other": False})

    with pytest.raises(ContentRefused) as caught:
        content.refuse(Kept(), ["message", "photo", "result"], {"message": False})

    error = caught.value
    assert (error.code, error.fields, error.store) == (
        "conversation-content",
        ("message", "photo"),
        "Kept",
    )
    assert "message, photo may not be kept" in str(error)
    assert "in-memory store, or let it be kept" in str(error)


def test_what_is_said_replaces_what_was_said():
    """`keep` replaces all that was said before; an empty word lifts it."""
    ledger.keep({"photo": False})
    ledger.keep({"message": False})
    content.refuse(Kept(), ["photo"], {})

    ledger.keep({})
    content.refuse(Kept(), ["photo", "message"], {})


def test_changing_the_mapping_later_changes_nothing():
    """What was said is taken as it was."""
    said = {"photo": False}
    ledger.keep(said)
    said["photo"] = True

    with pytest.raises(ContentRefused):
        content.refuse(Kept(), ["photo"], {})


@pytest.mark.parametrize("wrong", [["photo"], {"photo": 0}, {"photo": None}, {1: False}])
def test_only_true_and_false_are_said_of_names(wrong):
    """Anything else is a TypeError, and what was said before stays."""
    ledger.keep({"photo": False})
    with pytest.raises(TypeError, match="True or False"):
        ledger.keep(wrong)
    with pytest.raises(ContentRefused):
        content.refuse(Kept(), ["photo"], {})


def test_every_thread_sees_one_word_or_the_other():
    """While one thread replaces what is said, no other thread sees half of it."""
    words = [{"a": False, "b": True}, {"a": True, "b": False}]
    ledger.keep(words[0])
    stop = threading.Event()

    def replace():
        while not stop.is_set():
            for word in words:
                ledger.keep(word)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(2000):
            with pytest.raises(ContentRefused) as caught:
                content.refuse(Kept(), ["a", "b"], {})
            assert len(caught.value.fields) == 1
    finally:
        stop.set()
        writer.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_fork_keeps_to_it():
    """What was said before a fork holds in the child; what the child says is its own."""
    code = """
import os, ledger
from ledger.turns import content
class Kept: persistent = True
def refused():
    try: content.refuse(Kept(), ["photo"], {})
    except ledger.errors.ContentRefused: return True
    return False
ledger.keep({"photo": False})
child = os.fork()
if child == 0:
    before = refused()
    ledger.keep({})
    os._exit(0 if before and not refused() else 1)
_, status = os.waitpid(child, 0)
raise SystemExit(0 if status == 0 and refused() else 1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
