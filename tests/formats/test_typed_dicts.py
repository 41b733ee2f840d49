"""The reader of vendors' types says no where it should."""

import pytest
from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam

from tests.formats.typed_dicts import fits


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ({"role": "user", "content": "x"}, MessageParam, True),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, MessageParam, True),
        ({"role": "user", "content": [{"type": "text"}]}, MessageParam, False),
        ({"role": "user", "content": [{"type": "text", "text": 3}]}, MessageParam, False),
        ({"role": "user", "content": "x", "name": "ada"}, MessageParam, False),
        ({"role": "robot", "content": "x"}, MessageParam, False),
        ({"role": "user", "content": "x", "name": "ada"}, ChatCompletionMessageParam, True),
        ({"role": "tool", "content": "x"}, ChatCompletionMessageParam, False),
    ],
)
def test_what_is_not_of_a_type_does_not_fit(value, kind, expected):
    """A missing key, an unknown key and a value of another type are each noticed, at any depth."""
    assert fits(value, kind) is expected
