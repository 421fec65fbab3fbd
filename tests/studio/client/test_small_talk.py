"""Small talk of the Python API: it begins a chat, unless the request names a method."""

import pytest
from kelp_fair import FAIR, READING, Fixed, replying
from langchain_core.documents import Document

import sleuth


@pytest.mark.parametrize(("method", "answered_by"), [(None, "chat"), ("chat", "chat"), ("plain-rag", "plain-rag")])
async def test_small_talk_begins_a_chat_if_no_method_is_named(
    settings: sleuth.Settings, method: str | None, answered_by: str
) -> None:
    found = (Document(FAIR, metadata={"source": "fair.md"}),)
    async with sleuth.open(settings, model=replying(READING), retriever=Fixed(found=found)) as app:
        answer = await app.ask("Thanks!", method=method)
    assert answer.method == answered_by
