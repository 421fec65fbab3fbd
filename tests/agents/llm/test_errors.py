"""Errors as model servers write them."""

from typing import Any

import pytest

from sleuth.agents.llm.errors import Refused, ServerError, as_model_error
from sleuth.tools.errors import ContextTooLong, ModelError, ModelUnavailable


def error_of(failure: Exception) -> ModelError:
    return as_model_error(failure, "http://127.0.0.1/v1", seconds=9)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no such seed"}},
        {"error": "no such seed"},
        {"detail": "no such seed"},
        {"detail": [{"loc": ["body", "seed"], "msg": "no such seed"}]},
        {"message": "no such seed"},
        {"object": "error", "message": "no such seed", "code": 400},
        "no such seed",
        ["no such seed"],
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
def test_error_shows_the_reason_in_any_form(body: Any, status: int) -> None:
    error = error_of(ServerError(body, status))
    assert f"status {status}: no such seed" in str(error)
    assert type(error) is (ModelUnavailable if status == 500 else Refused)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": "The model is loaded with context length of only 2048 tokens, which is not enough."}),
        (400, {"error": "Cannot keep the prompt: it is greater than the context length"}),
        (400, {"error": {"message": "The decoder prompt (length 9) is longer than the maximum model length of 8."}}),
        (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 and 512"}),
        (422, {"error": "`inputs` must have less than 1024 tokens. Given: 5000", "error_type": "validation"}),
        (422, {"detail": "input too long"}),
        (500, {"error": {"message": "the request exceeds the available context size"}}),
        (500, "the input length exceeds the context length"),
        (413, "Request Entity Too Large"),
    ],
)
def test_error_of_a_long_prompt_is_recognized(status: int, body: Any) -> None:
    assert type(error_of(ServerError(body, status))) is ContextTooLong
