"""Roles that read passages, answered by the evidence checker."""

from dataclasses import replace
from typing import Any

import pytest
from scenes import Case, passage, plain
from scripted_checker import ScriptedChecker
from scripted_model import ScriptedModel

from sleuth.agents.model import DEMO_MODEL, EVIDENCE_CHECKER, Message, Model, Request
from sleuth.agents.model_calls.output_parsing import parse_reply
from sleuth.agents.role import Role
from sleuth.agents.roles.judging import REVIEW, REVIEW_STEP
from sleuth.agents.roles.reading import ANSWER_WITH_SOURCES, CITE, DRAFT, DRAFT_SENTENCE, READ
from sleuth.graphs.baselines.plain_rag import Settings
from sleuth.graphs.evidence.reading_model import ROLES, ReadingModel, with_reading_roles
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker.checker import Reading

TOWER = {"title": "Tower", "text": "It is old. The tower stands in Varn, by the sea."}
RAIN = {"title": "Rain", "text": "Rain falls in Isk."}
QUOTE = {"source": 2, "quote": "The tower stands in Varn, by the sea."}


class Named(ScriptedModel):
    def __init__(self, name: str) -> None:
        super().__init__(["other"] * 9)
        self.name = name

    def name_of(self, role: str) -> str:
        return self.name


class Exact(ScriptedChecker):
    """Reads the words at their place."""

    def read(self, question: str, passages: Any) -> Reading:
        found = super().read(question, passages)
        spans = [
            replace(span, start=(at := passages[span.passage].text.index(self.answer)), end=at + len(self.answer))
            for span in found.spans
        ]
        return replace(found, spans=tuple(spans))


def request(role: Role[Any, Any], **more: Any) -> Request:
    given = {"question": "Where does the tower stand?", "sources": [RAIN, TOWER], **more}
    messages = (Message(role="user", content="?"),)
    return Request(
        call_id="c", role=role.name, prompt=role.prompt, messages=messages, input=given, schema=role.schema()
    )


async def reply(role: Role[Any, Any], checker: ScriptedChecker | None = None, **more: Any) -> dict[str, Any]:
    model = ReadingModel(Named("large"), checker or Exact())
    found = await model.call(request(role, **more))
    assert (found["model"], found["usage"]["prompt_tokens"]) == (EVIDENCE_CHECKER, 0)
    output, cuts = parse_reply(role, found)
    assert not cuts, "each reply keeps to the lengths of its role"
    return output.model_dump()  # type: ignore[no-any-return]


async def test_read_gives_the_words_and_quotes_their_sentence() -> None:
    assert await reply(READ) == {"answerable": True, "answer": "Varn", "citations": [QUOTE]}


@pytest.mark.parametrize("sources", [[], [RAIN]])
async def test_read_gives_no_answer_without_support(sources: list[dict[str, str]]) -> None:
    assert not (await reply(READ, sources=sources))["answerable"]


@pytest.mark.parametrize(("answer", "citations"), [("Varn", [QUOTE]), ("Isk", [])])
async def test_citations_are_those_of_the_answer_that_is_read(answer: str, citations: list[Any]) -> None:
    assert await reply(CITE, answer=answer) == {"citations": citations}


async def test_drafts_are_the_likeliest_answer() -> None:
    assert await reply(DRAFT, Exact(answerable=0.1)) == {"answer": "Varn", "citations": [QUOTE]}
    assert (await reply(DRAFT_SENTENCE))["answer"] == QUOTE["quote"]


@pytest.mark.parametrize("role", [REVIEW, REVIEW_STEP])
async def test_review_revises_what_it_reads_otherwise_with_good_support(role: Role[Any, Any]) -> None:
    past = {"trajectory": []} if role is REVIEW else {}
    revised = await reply(role, answer="Isk", **past)
    assert (revised["status"], revised["answer"], revised["citations"]) == ("REVISED", "Varn", [QUOTE])
    assert (await reply(role, answer="Varn", **past))["status"] == "PASS"
    assert (await reply(role, Exact(answerable=0.5), answer="Isk", **past))["status"] == "PASS"


async def test_the_last_finding_is_the_answer_where_the_passages_have_none() -> None:
    steps = [{"question": "?", "answer": "Isk"}, {"question": "?", "answer": "not found"}]
    assert await reply(ANSWER_WITH_SOURCES, trajectory=steps) == {"known": True, "answer": "Varn"}
    doubting = Exact(answerable=0.05)
    assert await reply(ANSWER_WITH_SOURCES, doubting, trajectory=steps) == {"known": True, "answer": "Isk"}


async def test_yes_or_no_quotes_both_passages() -> None:
    class Affirming(ScriptedChecker):
        def read(self, question: str, passages: Any) -> Reading:
            return replace(super().read(question, passages), yes=0.9, no=0.05)

    found = await reply(READ, Affirming(), question="Does the tower stand in Varn, and does rain fall in Isk?")
    assert found["answer"] == "yes"
    assert {quote["source"] for quote in found["citations"]} == {1, 2}


async def test_a_long_sentence_is_quoted_in_part() -> None:
    long = {"title": "Tower", "text": f"The tower stands in Varn{' and on' * 60}."}
    (quote,) = (await reply(READ, sources=[long]))["citations"]
    assert len(quote["quote"]) == 240
    assert long["text"].startswith(quote["quote"])


async def test_other_roles_are_the_models() -> None:
    model = ReadingModel(Named("large"), Exact(), roles=("reader",))
    assert (await model.call(request(DRAFT)))["text"] == "other"
    assert (model.name_of("reader"), model.name_of("drafter")) == (EVIDENCE_CHECKER, "large")
    assert await model.count_tokens((Message(role="user", content="?"),), role="reader") == 0


@pytest.mark.parametrize(
    ("name", "models", "roles"),
    [
        ("large", {}, ()),
        ("large", {"reader": EVIDENCE_CHECKER}, ("reader",)),
        (DEMO_MODEL, {}, ROLES),
        (DEMO_MODEL, {"reader": DEMO_MODEL}, ROLES[1:]),
        ("", {}, ROLES),
    ],
)
def test_roles_of_the_checker(name: str, models: dict[str, str], roles: tuple[str, ...]) -> None:
    model = with_reading_roles(Named(name), Exact(), models)
    assert tuple(role for role in ROLES if model.name_of(role) == EVIDENCE_CHECKER) == roles


def test_a_role_that_shows_no_passages_cannot_be_the_checkers() -> None:
    with pytest.raises(UsageError, match="cannot be the planner, only reader"):
        with_reading_roles(Named("large"), Exact(), dict.fromkeys(("planner", "refiner"), EVIDENCE_CHECKER))


async def test_plain_rag_reads_without_a_server() -> None:
    case: Case = plain([], [passage("rain", RAIN["text"]), passage("tower", TOWER["text"])], Settings())
    silent: Model = ReadingModel(Named(""), Exact())
    case.model = silent  # type: ignore[assignment]
    verdict = await case.run("Where does the tower stand?", checker=Exact())
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert [citation["quote"] for citation in verdict["citations"]] == [QUOTE["quote"]]
    assert "weak" not in verdict["support"]
