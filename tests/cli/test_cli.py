"""The command line: what it prints, what it refuses, how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ledger

EXPORT = Path(__file__).parents[2] / "docs" / "tutorial" / "chatgpt-export.json"
FRACTIONS = "6955bd00-aaaa-4bbb-8ccc-000000000001"
COMMANDS = (
    "import list search usage tree log show lineage heads diff head attachment add merge rate label title export rated "
    "verify repair doctor watch stop abandon approve deny resume forget delete"
)


@pytest.fixture
def alex(cli, tmp_path):
    """A conversation of three turns, two of them beside each other."""
    chat = ledger.open("alex", store=tmp_path / "store")
    first = chat.record("What is 1/2 + 1/3?", "5/6")
    chat.record("Why?", "Because.", model="a")
    chat.continue_from(first).record("Why?", "Six parts.", model="b")
    return chat


def test_help_lists_every_command_with_examples(cli):
    """The help names every command; each command's help has an example."""
    code, out, _ = cli("--help")
    assert code == 0
    for command in COMMANDS.split():
        assert f" {command} " in out
        _, shown, _ = cli(command, "--help")
        assert "Example: turn-ledger" in " ".join(shown.split())


def test_an_export_is_imported_and_drawn(cli):
    """Import reports what it did; tree shows every branch, title and head, within 80 columns."""
    code, out, _ = cli("import", str(EXPORT))
    assert (code, "2 conversations" in out) == (0, True)

    code, out, _ = cli("tree", FRACTIONS)
    assert code == 0
    assert out.splitlines()[0] == f"{FRACTIONS} · Fractions with Alex · 5 turns, 3 heads"
    assert "◂ head" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_importing_again_adds_nothing(cli):
    """A second import of the same file leaves the log as it is, byte for byte."""
    cli("import", str(EXPORT))
    _, before, _ = cli("export", FRACTIONS)
    code, out, _ = cli("import", str(EXPORT))

    assert code == 0
    assert cli("export", FRACTIONS)[1] == before
    assert (
        out == "imported 0 conversations, 0 turns\nalready there: 2 whole conversations, 6 turns\n"
    )


def test_a_bad_path_fails_an_import_and_costs_the_others_nothing(cli, tmp_path):
    """What can be imported is, and told; then the exit code says that a path was not there."""
    missing = str(tmp_path / "missing.zip")
    code, out, err = cli("import", missing, str(EXPORT), "--json")

    assert code == 6
    assert json.loads(out)["conversations"] == 2
    assert json.loads(out)["skipped"][0]["what"] == missing
    error = json.loads(err)["error"]
    assert error["message"] == f"{missing}: there is no such file or folder"
    code, out, err = cli("import", str(EXPORT), missing, __file__)
    assert code == 6
    assert out.startswith("imported 0 conversations, 0 turns\nalready there: 2 whole")
    assert err.count("\n") == 1
    assert f"{missing}: there is no such file" in err
    assert f"{__file__}: nothing to import" in err


def test_list_shows_the_newest_first(cli, alex):
    """Conversations are listed with turns, heads, time and title."""
    alex.title = "Fractions"
    code, out, _ = cli("list")
    assert code == 0
    assert out.splitlines()[1].split()[:3] == ["alex", "3", "2"]
    assert json.loads(cli("list", "--json")[1])[0]["title"] == "Fractions"


def test_a_log_without_turns_says_so(cli, tmp_path):
    """One that was begun anew names the command that shows what was before; one with a title alone has none yet."""
    memory = ledger.memory(tmp_path / "store", format="openai")
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    memory.append("alex", said)
    memory.clear("alex")
    ledger.open("new", store=tmp_path / "store").title = "New"

    assert cli("log", "alex")[1] == "begun anew; `turn-ledger tree alex` shows the turns before\n"
    assert cli("log", "new")[1] == "no turns yet\n"
    assert cli("log", "alex", "--json")[1] == "[]\n"


def test_log_and_show_print_turns_in_full(cli, alex):
    """log prints a branch, show one turn with its facts."""
    _, out, _ = cli("log", "alex", "--last", "1")
    assert "> Why?" in out
    assert "< Six parts." in out
    assert "5/6" not in out
    assert "Because." in cli("log", "alex", "--turn", "2")[1]
    assert "saw: 1" in cli("show", "alex", "3")[1]


def test_what_was_left_out_of_a_turn_is_told(cli, tmp_path):
    """show, lineage and diff name the fields that the turns a turn saw were shown without."""
    chat = ledger.open("alex", lambda message: "Yes.", store=tmp_path / "store")
    chat("One?")
    turn = chat.send("Two?", context=ledger.all_turns(without=["result"]))

    assert "\n  saw: 1 without result\n" in cli("show", "alex", "2")[1]
    assert "saw turn 1" in cli("lineage", "alex", "2")[1]
    assert cli("lineage", "alex", "2")[1].rstrip().endswith("without result")
    assert "turn 2 saw turn 1 without result" in cli("diff", "alex", "1", "2")[1]
    assert "  was shown:\n  1 message: One?\n" in cli("show", "alex", "2", "--shown")[1]
    assert json.loads(cli("show", "alex", "2", "--shown", "--json")[1])["shown"] == turn.shown
    for command in ("show", "lineage"):
        assert json.loads(cli(command, "alex", "2", "--json")[1])["without"] == turn.without


def test_recorded_settings_are_shown(cli, tmp_path):
    """show prints the settings of a turn that were recorded, in a line; show --json has them as they are."""

    @ledger.program(settings=["effort"])
    def program(message: str) -> str:
        return message

    ledger.open("alex", program, store=tmp_path / "store", lm="a")("Well?", effort=["high", "\n"])

    assert "\n  settings: effort ['high', '\\n'], lm a\n" in cli("show", "alex", "1")[1]
    shown = json.loads(cli("show", "alex", "1", "--json")[1])
    assert shown["settings"] == {"effort": ["high", "\n"], "lm": "a"}


def test_an_error_without_a_message_is_its_type(cli, tmp_path):
    """log, show and watch print an error that says nothing without a colon."""

    def program(message: str) -> str:
        raise AssertionError

    chat = ledger.open("alex", program, store=tmp_path / "store")
    with pytest.raises(AssertionError):
        chat("Well?")

    for command in (["log", "alex"], ["show", "alex", "1"], ["watch", "alex"]):
        assert "\n! AssertionError\n" in cli(*command)[1]


def test_what_a_turn_had_said_when_it_failed_is_shown(cli, tmp_path):
    """log and show print the partial text of a turn that has no answer, marked as that."""

    def cut_off(message: str) -> str:
        ledger.current().emit("half an ans")
        raise ConnectionError("cut off")

    chat = ledger.open("alex", cut_off, store=tmp_path / "store")
    with pytest.raises(ConnectionError):
        chat("Well?")

    for command in (["log", "alex"], ["show", "alex", "1"]):
        out = cli(*command)[1]
        assert "\n> Well?\n<… half an ans\n! ConnectionError: cut off\n" in out
    assert json.loads(cli("show", "alex", "1", "--json")[1])["partial"] == "half an ans"


def test_every_reading_command_speaks_json(cli, alex):
    """Each reading command prints JSON on request."""
    for command in (
        ["list"],
        ["tree", "alex"],
        ["log", "alex"],
        ["show", "alex", "2"],
        ["lineage", "alex", "2"],
        ["diff", "alex", "2", "3"],
        ["title", "alex"],
        ["heads", "alex"],
        ["head", "alex"],
        ["verify"],
        ["export", "alex"],
    ):
        extra = [] if command[0] == "export" else ["--json"]
        code, out, _ = cli(*command, *extra)
        assert code == 0
        json.loads(out)


def test_turns_are_named_by_number_and_part_of_an_id(cli, alex):
    """A turn's number, its id and a part of it name the same turn."""
    turn = alex.turn(2)
    shown = {cli("show", "alex", name)[1] for name in ("2", turn.id, turn.id[-12:])}
    assert len(shown) == 1


def test_turns_are_added_merged_and_the_head_moved(cli, alex):
    """add, merge --pick, merge --text and head append what they say."""
    assert cli("add", "alex", "And 1/4?", "7/12", "--parent", "2", "--model", "m")[0] == 0
    assert cli("merge", "alex", "2", "3", "--pick", "3")[0] == 0
    assert cli("merge", "alex", "2", "3", "--text", "-", given="Both.\n")[0] == 0
    assert cli("head", "alex", "2")[0] == 0

    assert alex.turn(4).parent.ordinal == 2
    assert (alex.turn(5).result, alex.turn(6).result) == ("Six parts.", "Both.")
    assert json.loads(cli("head", "alex", "--json")[1])["ordinal"] == 2


def test_conversations_are_named_by_the_beginning_of_their_id(cli):
    """A beginning that one id has names it; one that several have is refused with how many."""
    cli("import", str(EXPORT))
    cli("add", "other", "a", "b")
    assert "◂ head" in cli("tree", "oth")[1]
    code, _, err = cli("tree", FRACTIONS[:8])
    assert (code, "2 conversations" in err) == (3, True)


def test_the_shell_completes_ids(cli, tmp_path):
    """Completion gives the ids of the store that begin as typed."""
    cli("add", "alex", "a", "b")
    cli("add", "ben", "a", "b")
    done = subprocess.run(
        [sys.executable, "-m", "ledger.cli"],
        env={
            **os.environ,
            "TURN_LEDGER_STORE": str(tmp_path / "store"),
            "_TURN_LEDGER_COMPLETE": "complete_bash",
            "_PYTHON _M LEDGER.CLI_COMPLETE": "complete_bash",
            "COMP_WORDS": "turn-ledger tree al",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["alex"]


def test_add_reads_standard_input(cli):
    """`-` takes a text from standard input, and a new id begins a conversation."""
    code, _, _ = cli("add", "new", "-", "answered", given="asked\nin two lines\n")
    assert code == 0
    assert json.loads(cli("show", "new", "1", "--json")[1])["inputs"] == {
        "message": "asked\nin two lines"
    }


def test_export_writes_a_new_file_for_its_owner_only(cli, alex, tmp_path):
    """-o writes a file with mode 0600 and never overwrites one."""
    out = tmp_path / "alex.md"
    assert cli("export", "alex", "-f", "markdown", "-o", str(out))[0] == 0
    assert "5/6" in out.read_text()
    assert out.stat().st_mode & 0o777 == 0o600
    code, _, err = cli("export", "alex", "-f", "markdown", "-o", str(out))
    assert code == 2
    assert "exists" in err


def test_export_to_a_place_that_cannot_be_written_is_a_users_error(cli, alex, tmp_path):
    """A missing folder is named; there is no traceback."""
    code, _, err = cli("export", "alex", "-o", str(tmp_path / "no" / "out.json"))
    assert code == 7
    assert "no/out.json" in err


def test_verify_finds_a_changed_byte(cli, alex, tmp_path):
    """A clean store verifies with 0; a changed byte is named and ends with 8."""
    assert cli("verify")[0] == 0
    log = tmp_path / "store" / "conversations" / "alex.jsonl"
    data = log.read_bytes().replace(b"Because.", b"Because!", 1)
    log.write_bytes(data)

    for id in ("alex", "al"):
        code, out, _ = cli("verify", id)
        assert code == 8
        assert "suspect" in out


def test_verify_reads_attachments(cli, tmp_path):
    """One that is gone is damage, unless they are not to be read."""
    store = ledger.FolderStore(tmp_path / "store")
    turn = ledger.open("pictures", store=store).record(
        {"message": ledger.Attachment(b"png")}, "seen"
    )
    sha256 = turn.inputs["message"].sha256
    assert cli("verify")[0] == 0
    store.blobs.remove([sha256])

    code, out, _ = cli("verify")
    assert code == 8
    assert f"missing: attachment {sha256}" in out
    assert cli("verify", "--no-attachments")[0] == 0


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["tree", "nobody"], 3, "conversation-unknown"),
        (["show", "alex", "9"], 3, "turn-unknown"),
        (["show", "alex", "zzzz"], 3, "turn-unknown"),
        (["tree", "../x"], 6, "conversation-id"),
        (["import", "/does/not/exist"], 6, "import-invalid"),
        (["merge", "alex", "2", "3"], 2, "--pick"),
        (["merge", "alex", "2", "3", "--pick", "1"], 2, "not one of"),
        (["merge", "alex", "2", "3", "--pick", "2", "--text", "x"], 2, "--pick"),
        (["merge", "alex", "2", "2", "--pick", "2"], 2, "twice"),
        (["export", "alex", "--turn", "2"], 2, "--format markdown"),
        (["--store", "", "list"], 2, "without a folder"),
        (["--store", __file__, "list"], 5, "a file, not a folder"),
        (["nonsense"], 2, "No such command"),
        (["add", "alex", "-", "-"], 2, "standard input"),
        (["verify", "nobody"], 3, "conversation-unknown"),
    ],
)
def test_a_users_error_is_one_sentence_and_a_code(cli, alex, args, code, word):
    """Errors go to stderr without a traceback; the exit code tells their kind."""
    found, out, err = cli(*args)
    assert found == code
    assert word in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize(
    "args",
    [
        ["import", ""],
        ["import", "x", ""],
        ["copy", "store", "", "--all"],
        ["copy", "", "store", "--all"],
        ["doctor", ""],
        ["export", "alex", "-o", ""],
        ["export", "alex", "--tools", ""],
        ["rated", "-o", ""],
        ["attachment", "alex", "x", "-o", ""],
        ["add", "alex", "q", "a", "--attach", ""],
        ["repair", "alex", "--from", ""],
    ],
)
def test_an_empty_path_is_no_path(cli, alex, args, tmp_path, monkeypatch):
    """A variable that was not set does not name the present folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    code, out, err = cli(*args)

    assert (code, out) == (2, "")
    assert "an empty path names nothing; . is the present folder" in err
    assert not [*(tmp_path / "here").iterdir()]


def test_what_steers_a_terminal_is_spelled_out(cli, tmp_path):
    """Control characters and direction marks in records never reach the terminal."""
    hostile = "\x1b]0;owned\x07\x1b[2J\u202eabc\r"
    ledger.open("alex", store=tmp_path / "store").record(hostile, hostile, model=hostile)

    for command in (["tree", "alex"], ["log", "alex"], ["show", "alex", "1"], ["heads", "alex"]):
        _, out, _ = cli(*command)
        assert not set(out) & {"\x1b", "\x07", "\u202e", "\r"}
        assert "\\x1b" in out


# -- as a process


def run(*args, store, **options):
    """Run the command line as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "ledger.cli", *args],
        env={**os.environ, "TURN_LEDGER_STORE": str(store)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def test_the_store_is_where_the_environment_says(tmp_path):
    """Without --store or TURN_LEDGER_STORE it is turn-ledger under XDG_DATA_HOME."""
    env = {k: v for k, v in os.environ.items() if k != "TURN_LEDGER_STORE"}
    subprocess.run(
        [sys.executable, "-m", "ledger.cli", "add", "alex", "a", "b"],
        env={**env, "XDG_DATA_HOME": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    assert (tmp_path / "turn-ledger" / "conversations" / "alex.jsonl").exists()


def test_the_store_may_be_named_before_or_after_the_command(cli, tmp_path):
    """--store counts wherever it stands; what follows `--` is left alone."""
    folder = str(tmp_path / "elsewhere")
    assert cli("add", "alex", "a", "b", "--store", folder)[0] == 0
    assert cli(f"--store={folder}", "show", "alex", "1")[0] == 0
    assert cli("add", "alex", f"--store={folder}", "--", "--store", "x")[0] == 0
    assert "> --store" in cli("log", "alex", "--store", folder)[1]
    assert cli("list", "--store")[0] == 2


def test_the_doctor_says_yes_or_no(cli, tmp_path):
    """`doctor` tries a folder and ends with 0 where it is fit."""
    code, out, _ = cli("doctor", str(tmp_path / "new"))
    assert code == 0
    assert "yes, it is fit" in out


def test_damage_is_told_on_stderr(tmp_path):
    """Reading a damaged conversation warns in one line and goes on."""
    chat = ledger.open("alex", store=tmp_path)
    chat.record("one", "1")
    chat.record("two", "2")
    log = tmp_path / "conversations" / "alex.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"message":"one"', b'"message":"One"', 1))
    done = run("log", "alex", store=tmp_path)
    assert (done.returncode, "two" in done.stdout) == (0, True)
    assert done.stderr.startswith("turn-ledger: conversation alex: damaged and left out: record 2;")
    assert len(done.stderr.splitlines()) == 1


def test_a_closed_pipe_is_quiet(tmp_path):
    """`turn-ledger log alex | head -1` ends without a word on stderr."""
    chat = ledger.open("alex", store=tmp_path)
    for i in range(50):
        chat.record(f"{i} " + "x" * 5000, "y")
    shell = f"{sys.executable} -m ledger.cli --store {tmp_path} log alex | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_extra_it_says_what_to_install(tmp_path):
    """Where typer is missing, one sentence names the extra."""
    code = "import sys; sys.modules['typer'] = None\nfrom ledger.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "turn-ledger[cli]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_printed(tmp_path):
    """--version prints the version."""
    assert ledger.__version__ in run("--version", store=tmp_path).stdout


def test_import_keeps_people_apart(cli, tmp_path):
    """--prefix begins the ids, --label is put on what is new; what is neither is wrong usage."""
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"messages": said}))
    for name in ("ann", "bob"):
        assert cli("import", str(path), "--prefix", f"{name}.", "--label", f"user:{name}")[0] == 0

    (found,) = json.loads(cli("list", "--label", "user:bob", "--json")[1])
    assert found["id"].startswith("bob.")
    assert cli("import", str(path), "--prefix", "ann")[0] != 0
    assert cli("import", str(path), "--label", "")[0] == 2
