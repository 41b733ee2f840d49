"""Messages as providers' programs have them, written for these tests after the providers' own types."""

SIGNATURE = "EqQBCkgIBxABGAIiQL0secret-signature"
ENCRYPTED = "gAAAAABsecret-encrypted"
REDACTED = "EmwKAhgBEgysecret-redacted"
CACHE = {"type": "ephemeral", "ttl": "1h"}
SECRETS = [
    "secret-",
    "ephemeral",
    "rs_1",
    "fc_1",
    "msg_1",
    "prompt_cache_breakpoint",
    "resp-9",
    "phase",
]

PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjQ="

OPENAI = {
    "text": [
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": [{"type": "text", "text": "In a list."}]},
        {"role": "user", "content": "Grüß dich", "name": "ada"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": ""},
    ],
    "tools": [
        {"role": "user", "content": "Weather in Paris and Rome?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_a1",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
                },
                {
                    "id": "call_a2",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
                },
            ],
            "refusal": None,
        },
        {"role": "tool", "tool_call_id": "call_a2", "content": "21 °C"},
        {
            "role": "tool",
            "tool_call_id": "call_a1",
            "content": [{"type": "text", "text": "18"}, {"type": "text", "text": "°C"}],
        },
        {"role": "assistant", "content": "18 and 21 °C."},
    ],
    "odd calls": [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"broken": '},
                },
                {"id": "c2", "type": "function", "function": {"name": "f", "arguments": ""}},
                {"id": "c3", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
                {
                    "id": "c4",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"n": 12345678901234567890}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "bad JSON"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "tool", "tool_call_id": "c3", "content": [{"type": "text", "text": "1"}]},
        {"role": "tool", "tool_call_id": "c4", "content": "big"},
    ],
    "media": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                {
                    "type": "image_url",
                    "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"},
                },
                {
                    "type": "image_url",
                    "image_url": {"url": "https://example.org/a.png"},
                    "prompt_cache_breakpoint": {"mode": "explicit"},
                },
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "mp3"}},
                {
                    "type": "file",
                    "file": {
                        "filename": "a.pdf",
                        "file_data": f"data:application/pdf;base64,{PDF}",
                    },
                },
                {"type": "file", "file": {"file_id": "file-abc"}},
            ],
        },
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "user", "content": "Please"},
        {"role": "assistant", "content": None, "refusal": "Still no."},
        {"role": "user", "content": "Say it"},
        {"role": "assistant", "content": None, "audio": {"id": "audio_abc"}},
    ],
}

RESPONSES = {
    "text": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Brief."}],
        },
        {"type": "message", "role": "user", "content": "Bye"},
    ],
    "reply": [
        {"role": "user", "content": "Weather?"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [
                {"type": "summary_text", "text": "Look it up."},
                {"type": "summary_text", "text": "Twice."},
            ],
            "encrypted_content": ENCRYPTED,
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [
                {"type": "output_text", "text": "One moment.", "annotations": []},
                {"type": "refusal", "refusal": "Not all."},
            ],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "get_weather",
            "arguments": '{"city": "Paris"}',
            "status": "completed",
        },
        {
            "type": "function_call",
            "id": "fc_12",
            "call_id": "call_2",
            "name": "get_weather",
            "arguments": "{}",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "18 °C"},
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": [
                {"type": "input_text", "text": "a map"},
                {
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": f"data:image/png;base64,{PNG}",
                },
            ],
            "status": "completed",
        },
        {"type": "reasoning", "id": "rs_12", "summary": [], "encrypted_content": ENCRYPTED},
        {
            "type": "message",
            "id": "msg_12",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "18 °C.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "start_index": 0,
                            "end_index": 2,
                            "title": "t",
                            "url": "https://example.org",
                        }
                    ],
                }
            ],
        },
    ],
    "media and others": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_image", "detail": "high", "image_url": "https://example.org/a.png"},
                {"type": "input_image", "detail": "auto", "file_id": "file-img"},
                {
                    "type": "input_file",
                    "filename": "a.pdf",
                    "file_data": f"data:application/pdf;base64,{PDF}",
                },
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                {"type": "input_file", "file_id": "file-doc"},
            ],
        },
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "q"},
        },
        {"type": "custom_tool_call", "call_id": "call_9", "name": "sql", "input": "select 1"},
        {"type": "custom_tool_call_output", "call_id": "call_9", "output": "1"},
        {"type": "item_reference", "id": "msg_77"},
    ],
}

ANTHROPIC = {
    "text": {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
        ],
    },
    "no system": {"messages": [{"role": "user", "content": "Hi"}]},
    "thinking and tools": {
        "system": [{"type": "text", "text": "Long rules.", "cache_control": CACHE}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Look it up.", "signature": SIGNATURE},
                    {"type": "redacted_thinking", "data": REDACTED},
                    {"type": "thinking", "thinking": "", "signature": SIGNATURE},
                    {"type": "text", "text": "One moment."},
                    {
                        "type": "tool_use",
                        "id": "toolu_01A",
                        "name": "get_weather",
                        "input": {"city": "Paris"},
                        "cache_control": {"type": "ephemeral"},
                    },
                    {"type": "tool_use", "id": "toolu_01B", "name": "get_map", "input": {}},
                    {"type": "tool_use", "id": "toolu_01C", "name": "boom", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "18 °C"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_01B",
                        "content": [
                            {"type": "text", "text": "a map"},
                            {
                                "type": "image",
                                "source": {
                                    "type": "base64",
                                    "media_type": "image/png",
                                    "data": PNG,
                                },
                            },
                        ],
                        "cache_control": {"type": "ephemeral"},
                    },
                    {"type": "tool_result", "tool_use_id": "toolu_01C", "is_error": True},
                    {"type": "text", "text": "And in Rome?"},
                ],
            },
            {"role": "assistant", "content": "18 °C."},
        ],
    },
    "media and others": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "url", "url": "https://example.org/a.png"},
                    },
                    {"type": "image", "source": {"type": "file", "file_id": "file_011"}},
                    {
                        "type": "document",
                        "source": {
                            "type": "base64",
                            "media_type": "application/pdf",
                            "data": PDF,
                        },
                        "title": "a.pdf",
                        "citations": {"enabled": True},
                    },
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "Grüße"},
                    },
                    {
                        "type": "search_result",
                        "source": "https://example.org",
                        "title": "t",
                        "content": [{"type": "text", "text": "found"}],
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_1",
                        "name": "web_search",
                        "input": {"query": "q"},
                    },
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "srvtoolu_1",
                        "content": [],
                    },
                    {"type": "text", "text": "Found."},
                ],
            },
            {"role": "system", "content": "Now be long."},
            {"role": "user", "content": "Go on"},
        ],
    },
}

_AT = "2026-11-29T20:52:01.955055Z"
PYDANTIC_AI = {
    "tools": [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "Be brief", "timestamp": _AT},
                {"part_kind": "user-prompt", "content": "Weather?", "timestamp": _AT},
            ],
            "timestamp": _AT,
            "instructions": "Be kind",
            "run_id": "run-1",
            "metadata": None,
        },
        {
            "kind": "response",
            "parts": [
                {
                    "part_kind": "thinking",
                    "content": "Look it up",
                    "id": None,
                    "signature": SIGNATURE,
                    "provider_name": "anthropic",
                },
                {"part_kind": "text", "content": "One moment.", "id": None},
                {
                    "part_kind": "tool-call",
                    "tool_name": "get_weather",
                    "args": {"city": "Paris"},
                    "tool_call_id": "call_1",
                },
                {
                    "part_kind": "tool-call",
                    "tool_name": "get_weather",
                    "args": '{"city": "Rome"}',
                    "tool_call_id": "call_2",
                },
                {
                    "part_kind": "tool-call",
                    "tool_name": "photo",
                    "args": None,
                    "tool_call_id": "call_3",
                },
            ],
            "usage": {"input_tokens": 53, "output_tokens": 8},
            "model_name": "some-model",
            "provider_response_id": "resp-9",
            "finish_reason": "tool_call",
            "timestamp": _AT,
        },
        {
            "kind": "request",
            "parts": [
                {
                    "part_kind": "tool-return",
                    "tool_name": "get_weather",
                    "content": {"celsius": 18},
                    "tool_call_id": "call_1",
                    "timestamp": _AT,
                    "outcome": "success",
                },
                {
                    "part_kind": "tool-return",
                    "tool_name": "get_weather",
                    "content": ["21", 21],
                    "tool_call_id": "call_2",
                    "timestamp": _AT,
                },
                {
                    "part_kind": "tool-return",
                    "tool_name": "photo",
                    "content": [
                        "here",
                        {"kind": "binary", "media_type": "image/png", "data": "_-8="},
                    ],
                    "tool_call_id": "call_3",
                    "timestamp": _AT,
                },
                {"part_kind": "user-prompt", "content": ["Umbrella?"], "timestamp": _AT},
            ],
            "instructions": None,
            "timestamp": _AT,
        },
        {
            "kind": "response",
            "parts": [{"part_kind": "text", "content": "No."}],
            "usage": {},
            "timestamp": _AT,
        },
    ],
    "media and others": [
        {
            "kind": "request",
            "parts": [
                {
                    "part_kind": "user-prompt",
                    "content": [
                        "Look",
                        {"kind": "image-url", "url": "https://example.org/a.png"},
                        {
                            "kind": "video-url",
                            "url": "https://example.org/v",
                            "media_type": "video/mp4",
                            "force_download": False,
                        },
                        {
                            "kind": "binary",
                            "media_type": "audio/wav",
                            "data": "UklGRg==",
                            "identifier": "4effda",
                        },
                        {
                            "kind": "uploaded-file",
                            "file_id": "file-1",
                            "provider_name": "openai",
                            "media_type": "application/pdf",
                        },
                        {"kind": "text-content", "content": "noted", "metadata": {"a": 1}},
                        {"kind": "cache-point", "ttl": "5m"},
                    ],
                }
            ],
        },
        {"kind": "response", "parts": []},
        {"kind": "request", "parts": [], "instructions": "Go on"},
        {
            "kind": "response",
            "parts": [
                {
                    "part_kind": "file",
                    "content": {"kind": "binary", "media_type": "image/png", "data": PNG},
                    "id": "img",
                },
                {
                    "part_kind": "builtin-tool-call",
                    "tool_name": "web_search",
                    "args": {"q": "x"},
                    "tool_call_id": "ws_1",
                },
            ],
        },
    ],
}

OF = {
    "openai": OPENAI,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "pydantic-ai": PYDANTIC_AI,
}
