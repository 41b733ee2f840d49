"""Token counts as callers hand them over: a vendor's become ours, others stay as they are named."""

from dataclasses import dataclass, field

import pytest

from ledger.errors import RecordInvalid
from ledger.formats.usage import counts, taken

OPENAI = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": None},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
ANTHROPIC = {
    "input_tokens": 10,
    "output_tokens": 5,
    "cache_read_input_tokens": 90,
    "cache_creation_input_tokens": None,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    "service_tier": "standard",
}
RESPONSES = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 15,
}
OURS = {"input_tokens": 10, "output_tokens": 5}
LITELLM = {**OPENAI, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}
DEEPSEEK = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_cache_hit_tokens": 4,
    "prompt_cache_miss_tokens": 6,
}
GEMINI = {
    "prompt_token_count": 8,
    "tool_use_prompt_token_count": 2,
    "candidates_token_count": 3,
    "thoughts_token_count": 2,
    "cached_content_token_count": 4,
    "total_token_count": 15,
    "prompt_tokens_details": [{"modality": "TEXT", "token_count": 8}],
    "traffic_type": None,
}
BEDROCK = {
    "inputTokens": 6,
    "outputTokens": 5,
    "totalTokens": 15,
    "cacheReadInputTokens": 3,
    "cacheWriteInputTokens": 1,
}
VERCEL = {
    "inputTokens": 10,
    "outputTokens": 5,
    "totalTokens": 15,
    "reasoningTokens": 2,
    "cachedInputTokens": 4,
}
COHERE = {
    "billed_units": {"input_tokens": 4, "output_tokens": 5},
    "tokens": {"input_tokens": 10, "output_tokens": 5},
}


@dataclass
class Used:
    """A vendor's counts, with a vendor's object in them."""

    requests: int = 2
    input_tokens: int = 10
    output_tokens: int = 5
    total_tokens: int = 15
    details: dict = field(default_factory=dict)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (OPENAI, {**OURS, "cache_read_tokens": 4, "reasoning_tokens": 2}),
        (ANTHROPIC, {"input_tokens": 100, "output_tokens": 5, "cache_read_tokens": 90}),
        (RESPONSES, {**OURS, "cache_read_tokens": 4}),
        (
            LITELLM,
            {**OURS, "cache_read_tokens": 4, "cache_write_tokens": 3, "reasoning_tokens": 2},
        ),
        (DEEPSEEK, {**OURS, "cache_read_tokens": 4}),
        (GEMINI, {**OURS, "cache_read_tokens": 4, "reasoning_tokens": 2}),
        ({"thoughtsTokenCount": 5, "promptTokenCount": 10}, {**OURS, "reasoning_tokens": 5}),
        (BEDROCK, {**OURS, "cache_read_tokens": 3, "cache_write_tokens": 1}),
        (VERCEL, {**OURS, "cache_read_tokens": 4, "reasoning_tokens": 2}),
        ({"promptTokens": 10, "completionTokens": 5}, OURS),
        (COHERE, OURS),
        ({"tokens": {"input_tokens": 10.0, "output_tokens": 5.0}, "billed_units": None}, OURS),
        (
            {"responseTokenCount": 3, "thoughtsTokenCount": 2, "promptTokenCount": 10},
            {**OURS, "reasoning_tokens": 2},
        ),
        ({**OPENAI, "cost": 0.01, "is_byok": False}, taken(OPENAI)),
        ({**OURS, "total_tokens": 15}, OURS),
        ({**OURS, "input_token_details": {"cache_read": 3}}, {**OURS, "cache_read_tokens": 3}),
        (Used(), {**OURS, "requests": 2}),
        ({**OURS, "prompt_eval_count": 3, "eval_duration": 5, "total_duration": 9}, OURS),
        ({"prompt_eval_count": 10, "eval_count": 5}, OURS),
        ({"prompt_tokens": 0, "completion_tokens": 0}, {}),
    ],
)
def test_a_vendors_counts_become_ours(given, expected):
    """Spelled as we do, nested details included; what else it tells that is no count is left out."""
    assert taken(given) == expected


@pytest.mark.parametrize("theirs", [OPENAI, ANTHROPIC, RESPONSES, {**OURS, "total_tokens": 15}])
def test_counts_by_other_names_stay_beside_a_vendors(theirs):
    """A name that no mapping knows is kept, as it is without a vendor's; zeros are not."""
    others = {"my_tool_calls": 3, "prompt_images": 64}

    assert taken({**theirs, **others, "images": 0, "tier": "x"}) == taken(theirs) | others


@pytest.mark.parametrize("counted", [OPENAI, ANTHROPIC, Used()])
def test_a_whole_reply_is_refused_with_what_to_give(counted):
    """It holds its counts one step further in."""
    with pytest.raises(RecordInvalid, match=r"give reply\.usage"):
        taken({"id": "x", "created": 1, "model": "m", "usage": counted})


def test_a_count_that_is_too_large_is_refused_with_the_limit():
    """For a vendor's names and for others."""
    with pytest.raises(RecordInvalid, match=r"from 0 to 1099511627775"):
        taken({"input_tokens": 2**60, "cached_tokens": 1})
    with pytest.raises(RecordInvalid, match=r"usage\.calls: .* from 0 to 9007199254740991"):
        taken({"input_tokens": 1, "cached_tokens": 1, "calls": 2**53})


@pytest.mark.parametrize(
    "given",
    [
        {},
        OURS,
        {"tokens": 0},
        {"myCount": 1, "inputTokensOfMine": 2},
        {"images": 3, "input_tokens": 1},
        {"total_tokens": 3, "in": 2},
    ],
)
def test_counts_by_other_names_are_kept(given):
    """What no vendor names so is the caller's own."""
    assert taken(given) == given
    assert taken(given) is not given


@pytest.mark.parametrize("given", [OPENAI, ANTHROPIC, RESPONSES, GEMINI, BEDROCK, VERCEL, COHERE])
def test_importers_read_the_same(given):
    """There is one mapping."""
    assert taken(given) == counts(given)


def test_what_lies_deeper_than_counts_is_passed_over():
    """However deep it is: an import is not given up for what nobody reads."""
    deep: dict = {}
    for _ in range(5000):
        deep = {"more": deep}
    assert counts({"promptTokens": 10, "rawUsage": deep}) == {"input_tokens": 10}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (5, "usage"),
        ("10", "usage"),
        ([1], "usage"),
        ({1: 1}, "usage"),
        ({"tokens": 1.5}, "usage.tokens"),
        ({"tokens": True}, "usage.tokens"),
        ({"tokens": None}, "usage.tokens"),
        ({"tokens": -1}, "usage.tokens"),
        ({"tokens": {"in": 5}}, "usage.tokens"),
        ({"tokens": 2**53}, "usage.tokens"),
        ({"prompt_tokens": 10, "calls": -1}, "usage.calls"),
        ({"prompt_tokens": "10"}, "usage.prompt_tokens"),
        ({"prompt_tokens": 10, "output_tokens": 1.5}, "usage.output_tokens"),
        ({"prompt_tokens": 10, "output_tokens": float("inf")}, "usage.output_tokens"),
        ({"prompt_tokens": 10.0, "mine": 1, "output_tokens": -1.0}, "usage.output_tokens"),
        (
            {**OPENAI, "prompt_tokens_details": {"cached_tokens": -4}},
            "usage.prompt_tokens_details.cached_tokens",
        ),
    ],
)
def test_what_is_no_count_is_refused(given, path):
    """The place is named."""
    with pytest.raises(RecordInvalid) as caught:
        taken(given)
    assert caught.value.path == path


def test_thinking_is_reasoning():
    """As Anthropic names it."""
    told = {
        "input_tokens": 3,
        "output_tokens": 40,
        "output_tokens_details": {"thinking_tokens": 30},
    }
    assert taken(told)["reasoning_tokens"] == 30


def test_objects_of_the_vendors_packages():
    """Their usage objects are taken as they are."""
    openai = pytest.importorskip("openai.types")
    anthropic = pytest.importorskip("anthropic.types")
    pydantic_ai = pytest.importorskip("pydantic_ai.usage")

    assert taken(openai.CompletionUsage.model_validate(OPENAI)) == taken(OPENAI)
    assert taken(anthropic.Usage.model_validate(ANTHROPIC)) == taken(ANTHROPIC)
    used = pydantic_ai.RunUsage(requests=1, input_tokens=10, output_tokens=5, cache_read_tokens=4)
    assert taken(used) == {**OURS, "cache_read_tokens": 4, "requests": 1}
