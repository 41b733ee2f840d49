"""A real client keeps its conversations here: toolnexus, by its own ConversationStore, against a scripted model."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError

import pytest
import toolnexus

import ledger
from ledger import aio


class Model:
    """An HTTP model on loopback, of either style: it repeats the question, tells how much it saw, or calls a tool."""

    def __init__(self):
        self.seen = []
        """The messages of each request."""
        self.gate = threading.Barrier(1)
        """What requests wait for before they are answered."""
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.seen.append(asked["messages"])
                model.gate.wait(30)
                if self.path.endswith("/chat/completions"):
                    message = openai_reply(asked["messages"])
                    if asked.get("stream"):
                        return self.stream(message)
                    answer: dict = {"choices": [{"message": message, "finish_reason": "stop"}]}
                else:
                    answer = {"role": "assistant", "content": anthropic_reply(asked["messages"])}
                return self.send(json.dumps(answer), "application/json")

            def stream(self, message):
                delta = {"role": "assistant", "content": message["content"]}
                lines = [json.dumps({"choices": [{"delta": delta}]}), "[DONE]"]
                self.send("".join(f"data: {line}\n\n" for line in lines), "text/event-stream")

            def send(self, text, kind):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(30)


def said(message):
    """What a message says."""
    content = message["content"]
    return content if isinstance(content, str) else content[0].get("text") or content[0]["content"]


def openai_reply(messages):
    last = messages[-1]
    if last["role"] == "user" and said(last).startswith("add"):
        numbers = [int(word) for word in said(last).split()[1:]]
        function = {"name": "add", "arguments": json.dumps({"numbers": numbers})}
        call = {"id": f"call-{len(messages)}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None}
    return {"role": "assistant", "content": f"{said(last)}, after {len(messages) - 1}"}


def anthropic_reply(messages):
    last = messages[-1]
    if last["role"] == "user" and said(last).startswith("add"):
        numbers = [int(word) for word in said(last).split()[1:]]
        use = {"type": "tool_use", "id": f"toolu_{len(messages)}", "name": "add"}
        return [{**use, "input": {"numbers": numbers}}]
    return [{"type": "text", "text": f"{said(last)}, after {len(messages) - 1}"}]


@pytest.fixture
def model():
    with Model() as model:
        yield model


def add(numbers: list[int]) -> str:
    """Add numbers."""
    return str(sum(numbers))


async def toolkit():
    """The client's own toolkit, with one tool and nothing else."""
    tool = toolnexus.define_tool(add, name="add", description="Add numbers.")
    return await toolnexus.create_toolkit(builtins=False, extra_tools=[tool])


def client(model, store, style="openai", **how):
    """The client itself, which remembers in a store."""
    base = f"{model.url}/v1" if style == "openai" else model.url
    return toolnexus.create_client(
        base_url=base, style=style, model="scripted", api_key="none", retries=0, store=store, **how
    )


@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_it_remembers(model, tmp_path, style):
    """Asked again under an id, by a new client over the same folder, it is sent all that was said, as it was said."""
    results = []

    async def ask(*prompts):
        memory = aio.memory(tmp_path, format=style)
        agent = client(model, memory, style, system_prompt="Be brief.")
        for prompt in prompts:
            results.append(await agent.ask(prompt, await toolkit(), id="user:42"))
        return await memory.get("user:42")

    asyncio.run(ask("Hi", "add 1 2"))
    kept = asyncio.run(ask("Bye"))

    assert kept == results[-1].messages
    assert [
        m["content"]
        for m in model.seen[-1]
        if m["role"] == "user" and isinstance(m["content"], str)
    ] == [
        "Hi",
        "add 1 2",
        "Bye",
    ]
    assert model.seen[-1][: len(results[1].messages)] == results[1].messages
    turns = ledger.open("user_3a42", store=tmp_path).turns
    assert [t.inputs["message"] for t in turns] == ["Hi", "add 1 2", "Bye"]
    assert [m["role"] for m in turns[1].messages] == ["user", "assistant", "tool", "assistant"]
    assert turns[1].result.startswith("3, after")


def test_it_remembers_what_it_streamed(model, tmp_path):
    """Streamed answers are kept as well."""
    pieces = []

    async def main():
        agent = client(model, aio.memory(tmp_path, format="openai"))
        await agent.ask("Hi", id="a", on_text=pieces.append)
        return await agent.ask("Bye", id="a", on_text=pieces.append)

    result = asyncio.run(main())

    assert "".join(pieces) == "Hi, after 0" + "Bye, after 2"
    assert ledger.memory(tmp_path, format="openai").get("a") == result.messages


def test_without_an_id_nothing_is_kept(model, tmp_path):
    """No id is a call on its own."""
    agent = client(model, aio.memory(tmp_path, format="openai"))
    asyncio.run(agent.ask("Hi"))

    assert ledger.FolderStore(tmp_path).conversations() == []


def test_a_run_that_fails_keeps_nothing(model, tmp_path):
    """The model cannot be reached: the conversation is as it was."""
    memory = aio.memory(tmp_path, format="openai")
    asyncio.run(client(model, memory).ask("Hi", id="a"))
    before = ledger.FolderStore(tmp_path).read("a")
    gone = client(model, memory)
    gone.base_url = "http://127.0.0.1:9"

    with pytest.raises(URLError):
        asyncio.run(gone.ask("Bye", id="a"))
    assert ledger.FolderStore(tmp_path).read("a") == before


def test_a_run_that_reached_its_limit_is_gone_on_with(model, tmp_path):
    """A run that ends with a tool's result is no turn; the next one is sent it all the same."""

    async def main():
        agent = client(model, aio.memory(tmp_path, format="openai"), max_turns=1)
        stopped = await agent.ask("add 1 2", await toolkit(), id="a")
        return stopped, await agent.ask("and?", await toolkit(), id="a")

    stopped, after = asyncio.run(main())

    assert stopped.status == "incomplete"
    assert model.seen[-1] == [*stopped.messages, {"role": "user", "content": "and?"}]
    assert ledger.memory(tmp_path, format="openai").get("a") == after.messages
    assert len(ledger.open("a", store=tmp_path).turns) == 2


def test_of_two_cycles_at_once_nothing_is_lost(model, tmp_path):
    """Two runs that began with the same history: the one saved last is current, the other is a branch."""
    memory = aio.memory(tmp_path, format="openai")

    async def main():
        agent = client(model, memory)
        await agent.ask("Hi", id="a")
        model.gate = threading.Barrier(2)
        return await asyncio.gather(agent.ask("one", id="a"), agent.ask("two", id="a"))

    results = asyncio.run(main())

    chat = ledger.open("a", store=tmp_path)
    assert [len(seen) for seen in model.seen] == [1, 3, 3]
    assert {t.result for t in chat.heads()} == {"one, after 2", "two, after 2"}
    assert {t.parent.ordinal for t in chat.heads()} == {1}
    current = asyncio.run(memory.get("a"))
    assert current in [result.messages for result in results]
    assert current[-1]["content"] == chat.turn(3).result
