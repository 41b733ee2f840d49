"""The page of docs/reference on dialects: what each can say is asked of the converters themselves."""

from __future__ import annotations

from typing import Any

from ledger.errors import MessagesLossy
from ledger.formats import dialects

DATA = "data:{};base64,{}"
PNG = DATA.format("image/png", "iVBORw0KGgo=")
PDF = DATA.format("application/pdf", "JVBERi0xLjQ=")


def uri(modality: str, where: str) -> dict[str, Any]:
    """Return the part of an address."""
    return {"type": "uri", "modality": modality, "uri": where}


def file(modality: str) -> dict[str, Any]:
    """Return the part of a file that the provider keeps."""
    return {"type": "file", "modality": modality, "file_id": "file-1"}


def user(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a user's message."""
    return [{"role": "user", "parts": list(parts)}]


TEXT = {"type": "text", "content": "hi"}
CALL = {"type": "tool_call", "id": "call_1", "name": "f", "arguments": {"a": 1}}
RESULT = {"type": "tool_call_response", "id": "call_1", "response": "1"}
WEB = "https://example.org/"


def said(role: str, *parts: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Return a user's message and one of a role."""
    return [*user(TEXT), {"role": role, "parts": list(parts), **more}]


def called(call: dict[str, Any], *result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a round of one call."""
    round = said("assistant", call)
    return [*round, {"role": "tool", "parts": list(result)}] if result else round


PROBES: dict[str, list[dict[str, Any]]] = {
    "text": said("assistant", TEXT),
    "a system message first": [{"role": "system", "parts": [TEXT]}, *user(TEXT)],
    "a system message later": said("system", TEXT),
    "a developer's message": said("developer", TEXT),
    "a speaker's `name`": [{**user(TEXT)[0], "name": "ada"}],
    "a speaker's `name` with a blank": [{**user(TEXT)[0], "name": "Ada King"}],
    "an image as data": user(uri("image", PNG)),
    "an image by its address": user(uri("image", WEB + "a.png")),
    "an image by its file id": user(file("image")),
    "a PDF as data": user(uri("document", PDF)),
    "plain text as a document": user(uri("document", DATA.format("text/plain", "aGk="))),
    "a document by its address": user(uri("document", WEB + "a.pdf")),
    "a document by its file id": user(file("document")),
    "audio as data (wav, mp3)": user(uri("audio", DATA.format("audio/wav", "UklGRg=="))),
    "audio by its address": user(uri("audio", WEB + "a.wav")),
    "video as data": user(uri("video", DATA.format("video/mp4", "AAAA"))),
    "video by its address": user(uri("video", WEB + "a.mp4")),
    "an image that the assistant made": said("assistant", uri("image", PNG)),
    "reasoning that it did not sign": said("assistant", {"type": "reasoning", "content": "hm"}),
    "a call and its result": called(CALL, RESULT),
    "a result with more text": called(CALL, RESULT, TEXT),
    "a result with an image": called(CALL, RESULT, uri("image", PNG)),
    "text after a call": [
        *said("assistant", CALL, TEXT),
        {"role": "tool", "parts": [RESULT]},
    ],
    "arguments that are no object": called({**CALL, "arguments": "select 1"}, RESULT),
    "a tool's name with a dot": called({**CALL, "name": "web.run"}, RESULT),
    "a call without a result": called(CALL),
    "a part that another provider alone knows": user(TEXT, {"type": "other:part", "content": {}}),
}

KEPT = {
    "openai": "an image's `detail`, cache marks, refusals, `audio` answers, `custom` calls, "
    "how arguments were spelled, keys of a message that are not known here, or say nothing in its role (a "
    "`tool_call_id` at an answer)",
    "openai-responses": "`reasoning` items with `encrypted_content`, the items' own ids (`fc_…`, `msg_…`, `rs_…`), "
    "`status`, `phase`, annotations, refusals, `detail`, cache marks; every other item whole",
    "anthropic": "the `signature` of thinking, redacted thinking, `cache_control`, citations, `is_error`; blocks of "
    "server tools, search results and every other block whole",
    "pydantic-ai": "times, usage, model, `run_id`, `instructions`, signatures, outcomes of tools, "
    "`metadata`, identifiers of files; every other part whole",
}
FORMS = {
    "openai": "the list `messages`",
    "openai-responses": "the list `input`",
    "anthropic": '`{"system"?, "messages"}`, for `create(**content)`',
    "pydantic-ai": "the list, as JSON data, that `ModelMessagesTypeAdapter` reads",
}


def can(name: str, messages: list[dict[str, Any]]) -> bool:
    """Say whether a dialect says all of some messages."""
    try:
        dialects.named(name).to_provider(messages, strict=True)
    except MessagesLossy:
        return False
    return True


def ids(name: str) -> str:
    """Return what a dialect asks of the ids of calls."""
    asked = dialects.named(name).IDS
    told = [f"at most {asked.longest} characters"] if asked.longest < 1000 else []
    told += ["only ASCII letters, digits, `_`, `-`"] if asked.plain else []
    told += ["each once in all messages"] if asked.once else []
    return ", ".join(told) or "any text"


def page() -> str:
    """Return the page."""
    names = list(dialects.DIALECTS)
    forms = [
        f"| `{name}` | {dialects.named(name).title} | {FORMS[name]} | {ids(name)} |"
        for name in names
    ]
    kept = [f"| `{name}` | {KEPT[name]} |" for name in names]
    matrix = [
        f"| {probe} | {' | '.join('yes' if can(name, m) else 'no' for name in names)} |"
        for probe, m in PROBES.items()
    ]
    return TEMPLATE.format(
        forms="\n".join(forms),
        kept="\n".join(kept),
        heads=" | ".join(f"`{name}`" for name in names),
        rule=" | ".join("---" for _ in names),
        matrix="\n".join(matrix),
    )


TEMPLATE = """\
# Dialects of messages

[Neutral messages](format.md#messages) are said in the form of a provider by `to_provider`, and read from it by
`from_provider`, both in the modules of `ledger.formats`; `ledger.formats.dialects` has them by name. The former
is done by `chat.messages(name)` and `current().messages(name)`, the latter by `current().note(messages=...)`: see
[how to](../how-to/give-the-model-its-messages.md).

| name | of | form | ids of calls |
| --- | --- | --- | --- |
{forms}

`to_provider(messages, strict=False, read=None)` returns `content`, what to send, and `losses`. `read` gives the
bytes of an attachment by its SHA-256. `from_provider(content)` returns neutral messages.

## What survives

- **What came from a provider goes back as it was**: `to_provider(from_provider(x))` is `x`, where each call has its
  result behind it. The exceptions are spellings that say the same: results of one reply that stood in several of
  Anthropic's messages are joined in one; what a provider refuses is not sent again: Anthropic's empty texts, an
  answer with neither words nor calls, and signs in a speaker's `name` that OpenAI does not take.
- **What all can say survives a change of provider**: who said what, in order, with calls and results.
- **What one provider alone understands stays with it.** It is kept under `only.<name>` of a part or message, is
  laid over what is made for that dialect, and is sent to no other. So a signature never reaches a provider that did
  not make it. What has no neutral form at all is a part of type `<name>:<its type>` with the object as `content`.

| name | kept beside, for it alone |
| --- | --- |
{kept}

## What each can say

Where it says *no*, converting tells a loss, with its place (`messages[3].parts[1]`) and the reason; with `strict`,
it is refused with `messages-lossy`, which names all of them.

| | {heads} |
| --- | {rule} |
{matrix}

No loss is told of what was not said to anybody: `finish_reason`, where a dialect has none; the media type of an
address; a tool's `name` beside its result. A result that is no text is sent as its JSON, except to pydantic-ai, and
is text when it is read again.

## Calls and results

Every provider refuses a request in which a call has no result right behind it. So `to_provider` puts each result
behind the reply that called. A result belongs to the latest reply before it that called under its id; of several
such calls in one reply, to the first that has none yet. What is amiss is mended, and each mending is a loss:

- a result that stands elsewhere is moved to its call;
- a call without a result gets one that says `No result was recorded.`, before later messages of the assistant;
- a result without a call is left out.

`from_provider` takes out again what `to_provider` put in, also where the real result stands beside it by now: a result
that says just this is nobody's. Else it mends nothing: what it returns is a record of what was there.

An id that a provider does not take is respelled: its own letters, and a hash of the id. The same id always becomes
the same, for the call and for its result. An id that is used again for another call, where that is not taken, gets
a hash of its own.

## Bytes

A dialect reads and writes bytes as `data:` addresses in `uri` parts. `ledger.formats.dialects.outlined(messages)`
returns the messages with `blob` parts instead, and the bytes by SHA-256, to be kept as attachments before the
messages are recorded. Data of a type that a provider does not take (Anthropic: other images than JPEG, PNG, GIF and
WebP) is a loss.
"""
