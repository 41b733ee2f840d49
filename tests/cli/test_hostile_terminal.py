"""The command line where something is against it: hostile text, odd names, outputs that fail, programs that ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ledger
from tests.stores.support import log_path

STEERING = "\x1b]0;owned\x07\x1b[2J\u202e\u2028\x9b31m"
EXPORT = Path(__file__).parents[2] / "docs" / "tutorial" / "chatgpt-export.json"


def cli(*arguments: str, store: Path | str, **options) -> subprocess.CompletedProcess[str]:
    """Run the command line as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "ledger.cli", *arguments],
        env={**os.environ, "TURN_LEDGER_STORE": str(store), "COLUMNS": "80"},
        check=False,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=60,
        **options,
    )


def shell(script: str, store: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in bash, where `ledger` is the command line."""
    return subprocess.run(
        ["bash", "-c", f'ledger() {{ {sys.executable} -m ledger.cli "$@"; }}; {script}'],
        env={**os.environ, "TURN_LEDGER_STORE": str(store)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def steers(text: str) -> list[str]:
    """Return the characters of a text that steer a terminal, or are none."""
    return [c for c in text if not (c.isprintable() or c in "\n\t")]


@pytest.fixture
def store(tmp_path):
    """A store with a short conversation."""
    ledger.open("alex", store=tmp_path / "store").record("a question", "an answer")
    return tmp_path / "store"


@pytest.mark.parametrize(
    "arguments",
    [
        ["tree", STEERING],
        ["tree", "--", STEERING],
        ["show", "alex", STEERING],
        ["add", STEERING, "a", "b"],
        ["import", STEERING],
        [STEERING],
        ["tree", "alex", f"--{STEERING}"],
        ["log", "alex", "--last", STEERING],
        ["export", "alex", "-f", STEERING],
        ["verify", STEERING],
        ["head", "alex", STEERING],
        ["merge", "alex", STEERING, "--pick", STEERING],
        ["diff", "alex", "1", STEERING],
        ["rate", "alex", "1", STEERING],
    ],
    ids=lambda arguments: " ".join(arguments)[:12],
)
def test_what_is_given_is_not_obeyed_by_the_terminal(store, arguments):
    """Ids, turns, paths and options come back spelled out in errors, for people and for programs."""
    for more in ([], ["--json"]):
        done = cli(*arguments[:1], *more, *arguments[1:], store=store)
        assert done.returncode in (2, 3, 6)
        assert steers(done.stdout + done.stderr) == []
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["list"], ["verify"], ["doctor"], ["tree", "x"]])
def test_the_name_of_the_store_is_spelled_out(tmp_path, command):
    """The folder of the store, whatever it is called, steers no terminal: also a name that is no UTF-8."""
    for name in (f"n{STEERING}\n", "n\udcff"):
        done = cli(*command, store=f"{tmp_path}/{name}")
        assert done.returncode in (0, 3)
        assert steers(done.stdout + done.stderr) == []
        assert "Traceback" not in done.stderr


def test_the_name_of_a_file_is_spelled_out(store, tmp_path):
    """An export to a file that is there, and an import of one that is none, name it harmlessly."""
    file = tmp_path / f"f{STEERING}"
    file.write_text("[1]")
    for arguments in (["export", "alex", "-o", str(file)], ["import", str(file)]):
        done = cli(*arguments, store=store)
        assert done.returncode in (2, 6)
        assert steers(done.stdout + done.stderr) == []
    assert file.read_text() == "[1]"


def test_foreign_files_are_named_harmlessly(store):
    """list and verify name, on stderr, what they passed over."""
    (store / "conversations" / f"x{STEERING}.jsonl").touch()
    for command in ("list", "verify"):
        done = cli(command, store=store)
        assert done.returncode == 0
        assert "belongs to no conversation" in done.stderr
        assert "x\\x1b" in done.stderr
        assert steers(done.stdout + done.stderr) == []


def test_an_id_that_looks_like_an_option(store):
    """Ids starting with `-` are options before `--`, and refused after it."""
    done = cli("tree", "-rf", store=store)
    assert (done.returncode, "No such option" in done.stderr) == (2, True)
    for command in (["tree"], ["verify"], ["add"]):
        done = cli(*command, "--", "-rf", *(["a", "b"] if command == ["add"] else []), store=store)
        assert (done.returncode, "[conversation-id]" in done.stderr) == (6, True)


def test_values_that_look_like_options_are_values(store):
    """What stands after `--` is text, whatever it looks like; no shell is ever called."""
    done = cli("add", "alex", "--", "--store", "$(touch owned); `id`", store=store)
    assert done.returncode == 0
    assert ledger.open("alex", store=store).turn(2).result == "$(touch owned); `id`"


# -- outputs that fail -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["log alex", "log alex --json", "list", "export alex", "verify"]
)
@pytest.mark.parametrize("size", [1, 100_000])
def test_a_closed_pipe_is_quiet_and_no_failure(tmp_path, command, size):
    """Whoever reads the output may leave at any moment: no word, exit code 0."""
    ledger.open("alex", store=tmp_path).record("a", "x" * size)
    done = shell(f"ledger {command} | true; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["log alex", "list", "export alex"])
@pytest.mark.parametrize("closed", ["> /dev/full", ">&-"])
def test_an_output_that_cannot_be_written_is_told(store, command, closed):
    """A full disk, or no standard output at all, is one sentence and an exit code of its own."""
    if closed == "> /dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    done = shell(f"ledger {command} {closed}", store)
    assert done.returncode == 7
    assert done.stderr.startswith("turn-ledger: the output cannot be written: ")
    assert len(done.stderr.splitlines()) == 1


def test_an_export_that_stops_half_way_leaves_no_file(store, tmp_path):
    """Half of an export is not left behind to be taken for the whole."""
    ledger.open("alex", store=store).record("a", "x" * 100_000)
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from ledger.cli import main; sys.argv[0] = 'turn-ledger'; main()"
    )
    out = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, "-c", code, "--store", str(store), "export", "alex", "-o", str(out)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, out.exists()) == (7, False)
    assert "File too large" in done.stderr


def test_a_terminal_that_cannot_show_it_gets_it_spelled_out(tmp_path):
    """Where the output's encoding lacks a character, it is spelled out."""
    ledger.open("alex", store=tmp_path).record("smile \U0001f600 é", "x")
    done = subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--store", str(tmp_path), "log", "alex"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "smile \\U0001f600 \\xe9" in done.stdout


# -- programs that ask -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (["tree", "nobody"], 3, "conversation-unknown"),
        (["show", "alex", "9"], 3, "turn-unknown"),
        (["tree", "../x"], 6, "conversation-id"),
        (["import", "/does/not/exist"], 6, "import-invalid"),
        (["verify", "nobody"], 3, "conversation-unknown"),
        (["merge", "alex", "1"], 2, "usage"),
        (["nonsense"], 2, "usage"),
        (["tree", "alex", "--none"], 2, "usage"),
        (["tree"], 2, "usage"),
        (["add", "alex", "-", "-"], 2, "usage"),
    ],
)
def test_errors_are_json_where_json_is_asked_for(store, arguments, exit_code, code):
    """With --json, stdout is empty on an error, and stderr is one JSON object with the code and a sentence."""
    done = cli(*arguments, "--json", store=store)
    assert (done.returncode, done.stdout) == (exit_code, "")
    told = json.loads(done.stderr)
    assert told["error"]["code"] == code
    assert set(told["error"]) == {"code", "message"}


def test_every_line_on_stderr_is_json_where_json_is_asked_for(store):
    """Warnings are JSON objects too, and do not mix with the result."""
    ledger.open("alex", store=store).record("two", "2")
    log = log_path(store, "alex")
    log.write_bytes(log.read_bytes().replace(b"a question", b"A question", 1))
    (store / "conversations" / "stranger").touch()
    done = cli("list", "--json", store=store)
    assert done.returncode == 0
    assert [row["id"] for row in json.loads(done.stdout)] == ["alex"]
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert sorted(next(iter(line)) for line in told) == ["warning", "warning"]


@pytest.mark.parametrize("command", ["list", "verify"])
def test_one_conversation_that_cannot_be_read_hides_no_other(store, command):
    """list and verify go on past it, name it with its code, and end with the code of a store that failed."""
    ledger.open("bea", store=store).record("a", "b")
    path = log_path(store, "alex")
    os.rename(path, path.with_name("kept"))
    path.mkdir()
    code = "import os\nfrom ledger.stores.folder import FolderStore as S\n" + (
        "from ledger.stores.home import Home\n"
        "Home.entries = lambda s: [(f'{c}.jsonl', c, True) for c in ('alex', 'bea')]\n"
        "S._holds_a_record = lambda s, c: True\n"
        "S.looks = lambda s: {'alex': '1', 'bea': '2'}\nfrom ledger.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--store", str(store), command, "--json"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 5
    assert "bea" in done.stdout
    assert json.loads(done.stderr.splitlines()[0])["error"]["code"] == "store-link"


# -- imports ---------------------------------------------------------------------------------------


def test_an_import_is_all_or_none_of_each_conversation(tmp_path):
    """An import that is cut off or refused anywhere leaves whole conversations, and no half of one."""
    whole = tmp_path / "whole"
    assert cli("import", str(EXPORT), store=whole).returncode == 0
    sizes = {c: len(ledger.open(c, store=whole).all_turns()) for c in names_in(whole)}
    data = EXPORT.read_bytes()
    cut = tmp_path / "cut.json"
    for share in (0.1, 0.4, 0.7, 0.95):
        cut.write_bytes(data[: int(len(data) * share)])
        store = tmp_path / f"cut{share}"
        done = cli("import", str(cut), store=store)
        assert done.returncode in (0, 6)
        assert "Traceback" not in done.stderr
        for conversation in names_in(store):
            assert len(ledger.open(conversation, store=store).all_turns()) == sizes[conversation]


def names_in(store: Path) -> list[str]:
    """Return the conversations in a folder."""
    return ledger.FolderStore(store).conversations()


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_that_cannot_be_written_is_told(store, option):
    """A full device is told in one line; a pipe that nobody reads is no error."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ledger.cli", option],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 7
    assert len(done.stderr.splitlines()) == 1
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "ledger.cli", option],
        check=False,
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", [["list"], ["add", "x", "q", "a"], ["delete", "x", "-y"]])
def test_a_store_below_a_file_is_told(tmp_path, command):
    """The file that is in the way is named."""
    (tmp_path / "file").touch()
    done = cli(*command, store=tmp_path / "file" / "x" / "y")
    assert done.returncode == 5
    assert f"{tmp_path}/file: it is a file, not a folder" in done.stderr
