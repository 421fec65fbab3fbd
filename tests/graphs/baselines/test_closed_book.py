"""Closed-book: one question to the model, and nothing to read."""

from typing import Any

import pytest
from scenes import Case, Shelf
from scripted_model import ScriptedModel
from test_plain_rag import TOWER

from sleuth.graphs.baselines import closed_book
from sleuth.graphs.baselines.closed_book import Settings


def closed(*replies: Any, settings: Settings | None = None, **more: Any) -> Case:
    return Case(closed_book.graph, ScriptedModel(replies), Shelf([TOWER]), settings or Settings(), **more)


async def test_closed_book_makes_one_call_without_search() -> None:
    case = closed({"answer": "30 m", "known": True})
    verdict = await case.run("How high is the tower?")
    assert (case.nodes, case.prompts(), case.retriever.queries) == (["answer"], ["answerer/from_memory"], [])
    assert verdict == {"status": "answered", "text": "30 m", "citations": []}
    assert case.state["warnings"] == ["no passage supports this answer word for word"]
    assert case.state["notes"]["answer"]["finding"] == "30 m"


@pytest.mark.parametrize(("profile", "status"), [(Settings(), "unknown"), (Settings().as_in_paper(), "answered")])
async def test_closed_book_guess_is_answer_in_paper_profile_only(profile: Settings, status: str) -> None:
    case = closed({"answer": "30 m", "known": False}, settings=profile)
    assert (await case.run("?"))["status"] == status
