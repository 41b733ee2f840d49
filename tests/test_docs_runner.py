"""The rules of CONTRIBUTING.md, "Documentation that runs", on small pages."""

import textwrap

import pytest

from tests.docs_runner import Block, DocsFailure, find_blocks, matches, run_blocks


def run_page(markdown, **settings):
    """Run a small page called page.md; the namespace its Python blocks shared."""
    namespace: dict[str, object] = {}
    run_blocks(find_blocks(textwrap.dedent(markdown), "page.md"), namespace, **settings)
    return namespace


def failure_of(markdown, **settings):
    """The message with which a small page fails."""
    with pytest.raises(DocsFailure) as caught:
        run_page(markdown, **settings)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_blocks_are_found_with_their_place():
    """A block knows its language, its text without the fence's indentation, its line, and whether it is adjacent."""
    page = "\n- item\n\n  ```python title\n  if x:\n      y\n  ```\n\n~~~text\n```\n~~~\nwords\n```json\n```\n"

    assert find_blocks(page, "page.md") == [
        Block("page.md", 5, "python", "if x:\n    y\n", adjacent=False, reason=None),
        Block("page.md", 10, "text", "```\n", adjacent=True, reason=None),
        Block("page.md", 14, "json", "", adjacent=False, reason=None),
    ]


def test_an_inner_shorter_fence_does_not_close_a_block():
    """A block of four ticks may show one of three."""
    (block,) = find_blocks("````text\n```sh\n```\n````\n", "page.md")

    assert block.text == "```sh\n```\n"


def test_a_block_without_end_fails():
    """A block that is never closed fails at its opening line."""
    assert failure_of("words\n```python\n1\n") == "page.md:2: this block is never closed"


def test_python_blocks_share_one_namespace():
    """A later Python block sees the names of an earlier one."""
    namespace = run_page("""
        ```python
        one = 1
        ```
        ```python
        two = one + 1
        ```
        """)

    assert namespace["two"] == 2


def test_python_and_sh_share_one_directory():
    """What a Python block writes, a sh block reads, and the other way round."""
    run_page("""
        ```python
        from pathlib import Path
        size = Path("note").write_text("hello")
        ```
        ```sh
        cat note; echo; echo back > answer
        ```
        ```text
        hello
        ```
        ```python
        print(Path("answer").read_text())
        ```
        ```text
        back
        ```
        """)


def test_an_exception_fails_at_its_line():
    """A Python block that raises fails at the line of the page, with the traceback and what was printed before."""
    message = failure_of("# Title\n\n```python\nprint('so far')\n1 / 0\n```\n")

    assert message.startswith("page.md:5: the block raised\nso far\nTraceback")
    assert 'File "page.md", line 5' in message
    assert "docs_runner.py" not in message
    assert message.endswith("ZeroDivisionError: division by zero\n")


def test_a_syntax_error_fails_at_its_line():
    """A Python block that is no Python fails at the line of the page."""
    assert failure_of("```python\nx = 1\nx =\n```\n").startswith("page.md:3: the block raised")


def test_leaving_python_fails():
    """A Python block cannot end the run of the page as if all were well."""
    assert "SystemExit: 0" in failure_of("```python\nraise SystemExit(0)\n```\n")


def test_the_runners_own_names_do_not_leak():
    """A Python block sees only what the page defined."""
    assert "NameError" in failure_of("```python\nrun_blocks\n```\n")


def test_other_output_fails():
    """A text block directly after a run block must show what was printed."""
    message = failure_of("```python\nprint(1)\n```\n\n```text\n2\n```\n")

    assert (
        message
        == "page.md:6: the block before printed something else\n--- shown\n2\n--- printed\n1\n"
    )


def test_output_after_words_is_not_compared():
    """A text block with words between it and the run block is only an illustration."""
    run_page("```python\nprint(1)\n```\nFor example:\n```text\n2\n```\n")


def test_output_is_compared_once():
    """A second text block in a row is only an illustration."""
    run_page("```python\nprint(1)\n```\n```text\n1\n```\n```text\n2\n```\n")


def test_a_failing_sh_command_fails():
    """A sh block stops at its first failing command, and what it printed on either stream is told."""
    message = failure_of("\n```sh\necho out; echo err >&2\nfalse\necho never\n```\n")

    assert message == "page.md:3: the block ended with exit code 1\nout\nerr\n"


def test_a_failing_pipe_fails():
    """A sh block fails also where a command fails before the end of a pipe."""
    assert "exit code 1" in failure_of("```sh\nfalse | cat\n```\n")


def test_errors_on_the_terminal_are_output():
    """What a sh command says on its error stream is shown and compared like the rest, in its place."""
    run_page("```sh\necho no >&2 || true; echo yes\n```\n```text\nno\nyes\n```\n")


def test_json_must_parse():
    """A json block that is no JSON fails at its line."""
    run_page('```json\n{"a":\n 1}\n```\n')

    assert failure_of('```json\n{"a": 1,\n "b": }\n```\n') == "page.md:3: not JSON: Expecting value"


def test_each_line_of_jsonl_must_parse():
    """A jsonl block fails at the first line that is no JSON."""
    run_page('```jsonl\n{"a": 1}\n{"a": 2}\n```\n')

    assert failure_of('```jsonl\n{"a": 1}\n{a}\n```\n').startswith("page.md:3: not JSON: ")


@pytest.mark.parametrize("language", ["", "pyton", "console"])
def test_an_unknown_language_fails(language):
    """A language without a rule fails, so that a slip of the pen does not switch a check off."""
    assert f"page.md:2: no rule for ```{language}; known are text, python" in failure_of(
        f"```{language}\nx\n```\n"
    )


def test_pictures_are_not_checked():
    """text and mermaid blocks may hold anything."""
    run_page("```text\n{\n```\n```mermaid\n{\n```\n")


def test_a_block_is_skipped_for_a_reason():
    """A block under a reason is not run, and neither is the text after it compared."""
    run_page("<!-- not run: needs a model -->\n\n```python\n1 / 0\n```\n```text\nnothing\n```\n")
    run_page("<!-- not run: shows a file of another program -->\n```toml\nx\n```\n")


@pytest.mark.parametrize("comment", ["<!-- not run: -->", "<!-- not run -->", "<!--not run:-->"])
def test_a_reason_must_not_be_empty(comment):
    """A block is not skipped without a reason."""
    assert failure_of(f"{comment}\n```python\n```\n") == (
        "page.md:2: 'not run' needs a reason: <!-- not run: reason -->"
    )


def test_a_reason_holds_for_one_block():
    """A reason skips the block directly under it, and no other."""
    page = "<!-- not run: slow -->\n```sh\nfalse\n```\n"

    assert failure_of(page + "```sh\nfalse\n```\n").startswith("page.md:6: ")
    assert failure_of(page.replace("```sh", "words\n```sh")).startswith("page.md:4: ")


def test_setup_commands_are_not_run():
    """The first sh blocks of a page with set-up commands are not run; later ones are."""
    page = "```sh\nfalse\n```\n```python\nx = 1\n```\n```sh\nfalse\n```\n"
    run_page(page, setup=2)

    assert failure_of(page, setup=1).startswith("page.md:8: the block ended with exit code 1")


@pytest.mark.parametrize("text", ["", "one\ntwo\n", "\n"])
def test_a_setup_command_is_one_line(text):
    """A set-up command that is not exactly one line fails."""
    assert (
        failure_of(f"```sh\n{text}```\n", setup=1)
        == "page.md:2: a set-up command must be exactly one line"
    )


def test_missing_setup_commands_are_an_error():
    """A page with fewer sh blocks than set-up commands is refused."""
    with pytest.raises(ValueError, match="lacks 1 of its set-up commands"):
        run_page("```sh\nfalse\n```\n", setup=2)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("", ""),
        ("a\n", "a\n"),
        ("a\n", "a   \n\n"),
        ("a (1)\n", "a (1)\n"),
        ("...\n", "a\nb\n"),
        ("a\n...\nd\n", "a\nb\nc\nd\n"),
        ("a\n...\nd\n", "a\nd\n"),
        ("a\n  ...\nd\n", "a\nb\nd\n"),
        ("turn <...> done\n", "turn 0192ab done\n"),
        ("<Turn ...>\n", "<Turn 1: 'hi'>\n"),
    ],
)
def test_shown_text_matches(shown, printed):
    """Equal text matches, white space at the ends aside, and `...` stands for any text or lines."""
    assert matches(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a\n", "b\n"),
        ("a\n", ""),
        ("a\n", "a\nb\n"),
        ("a\n", "\na\n"),
        ("a.c\n", "abc\n"),
        ("a\n...\nd\n", "a\nb\n"),
        ("a ... b\n", "a x\ny b\n"),
        ("a <...>\n", "b x\n"),
    ],
)
def test_other_text_does_not_match(shown, printed):
    """Other text does not match, and `...` within a line does not reach beyond it."""
    assert not matches(shown, printed)
