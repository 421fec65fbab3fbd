"""A report: sections are researched by other methods, and every sentence has a source that supports it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scenes import FailingLate, Json, Replying, Shelf, ask, down_once, finish, passage, resolves
from scripted_checker import ScriptedChecker

from sleuth.agents.model import Request
from sleuth.graphs.chat.sending import send
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget, Services
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.runs.history import fork_run
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable, RunError, UsageError
from sleuth.tools.evidence_checker import Evidence
from sleuth.tools.evidence_checker.checker import Support

QUESTION = "What is known about the Alder yard?"
OUTLINE = {
    "title": "The Alder yard",
    "sections": [
        {"heading": "Founding", "question": "When was the Alder yard founded?"},
        {"heading": "Owner", "question": "Who owns the Alder yard?"},
    ],
}
PASSAGES = [
    passage("founding", "The Alder yard was founded in 1868. It stood at the river."),
    passage("owner", "Mara Lindqvist owns the Alder yard."),
]
FOUNDED = {"text": "The Alder yard was founded in 1868.", "sources": [1]}
OWNED = {"text": "Mara Lindqvist owns the Alder yard.", "sources": [1]}
FALSE = {"text": "The Alder yard built forty ships.", "sources": [1]}


class WordChecker(ScriptedChecker):
    """A checker to which a passage supports a statement if it contains its words."""

    def check(self, statement: str, passages: Sequence[Evidence]) -> Support:
        words = statement.rstrip(".").split()
        supported = float(any(all(word in each.text for word in words) for each in passages))
        return Support(supported=supported, contradicted=0.0, not_mentioned=1 - supported, relevance=())


def write(request: Request, **sentences: list[Json]) -> Any:
    """Reply as a model without mistakes; `sentences` are those of a section, by its heading."""
    if request.prompt == "planner/outline":
        return OUTLINE
    topic = "Founding" if "founded" in request.input["question"] else "Owner"
    if request.prompt == "answerer/section":
        return {"sentences": sentences.get(topic, [FOUNDED if topic == "Founding" else OWNED])}
    answer, quote = ("1868", "founded in 1868") if topic == "Founding" else ("Mara Lindqvist", "Mara Lindqvist owns")
    return {"answerable": True, "answer": answer, "citations": [{"source": 1, "quote": quote}]}


def service(store: Store, answer: Callable[[Request], Any] | Replying = write, *, checker: bool = True) -> RunService:
    found = {each["question"]: [source] for each, source in zip(OUTLINE["sections"], PASSAGES, strict=True)}  # type: ignore[index]
    found |= {"When was it founded?": PASSAGES[:1], "Who owns it now?": PASSAGES[1:], OWNED["text"]: PASSAGES[1:]}
    services = Services(
        model=answer if isinstance(answer, Replying) else Replying(answer),
        retriever=Shelf(PASSAGES, found=found),
        checker=WordChecker() if checker else None,
    )
    return RunService(store, services)


async def report(runs: RunService, budget: Budget | None = None, **values: Any) -> Answer:
    values = {"method": "plain-rag", "passages": 1, **values}
    return await ask(runs, QUESTION, "report", values=values, budget=budget or Budget())


async def nodes(runs: RunService, id: str) -> list[str]:
    history = await runs.history(await runs.store.threads.get(id))
    return [task.name for state in reversed(history) for task in state.tasks]


async def test_report_has_sections_and_a_source_for_each_sentence(store: Store) -> None:
    runs = service(store)
    answer = await report(runs)
    assert answer.status == "answered"
    assert answer.text == (
        "# The Alder yard\n\n## Founding\n\nThe Alder yard was founded in 1868."
        "\n\n## Owner\n\nMara Lindqvist owns the Alder yard."
    )
    assert all(resolves(citation, PASSAGES) for citation in answer.citations)
    supported = [[answer.text[:end].rpartition("\n")[2] for end in each["sentence_ends"]] for each in answer.citations]
    assert supported == [["The Alder yard was founded in 1868."], ["Mara Lindqvist owns the Alder yard."]]
    assert [(hop["method"], hop["text"]) for hop in answer.hops or []] == [
        ("plain-rag", "1868"),
        ("plain-rag", "Mara Lindqvist"),
    ]
    expected = ["__start__", "outline", "research", "research", "write", "review", "collate"]
    assert await nodes(runs, answer.thread) == expected


@pytest.mark.parametrize(
    ("sentence", "is_found_again"),
    [
        ({"text": "Mara Lindqvist owns the Alder yard.", "sources": []}, True),
        ({"text": "Mara Lindqvist owns the Alder yard.", "sources": [9]}, True),
        (FALSE, False),
        ({"text": "The Alder yard was founded in 1968.", "sources": [1]}, False),
    ],
)
async def test_unsupported_sentence_is_searched_for_once_and_left_out(
    store: Store, sentence: Json, is_found_again: bool
) -> None:
    runs = service(store, lambda request: write(request, Founding=[FOUNDED, sentence]))
    answer = await report(runs)
    assert (sentence["text"] in answer.text.partition("## Owner")[0]) == is_found_again
    left_out = [each for each in answer.warnings if each.startswith("left out, as no source supports it")]
    assert len(left_out) == (not is_found_again)
    assert (await nodes(runs, answer.thread))[-4:] == ["review", "retrieve", "review", "collate"]
    assert all(resolves(citation, PASSAGES) for citation in answer.citations)


async def test_section_without_a_sentence_is_named_at_the_end(store: Store) -> None:
    answer = await report(service(store, lambda request: write(request, Owner=[], Founding=[FOUNDED, FOUNDED])))
    assert answer.text.count(str(FOUNDED["text"])) == 1
    assert answer.text.endswith("Not found in the documents:\n\n- Who owns the Alder yard?")
    assert (await report(service(store, lambda request: write(request, Owner=[], Founding=[])))).status == "unknown"


async def test_given_outline_is_not_planned(store: Store) -> None:
    runs = service(store)
    answer = await report(runs, sections=[{"question": "Who owns the Alder yard?"}])
    assert answer.text == f"# {QUESTION}\n\n## Who owns the Alder yard\n\nMara Lindqvist owns the Alder yard."


@pytest.mark.parametrize(
    ("planned", "researched"),
    [
        (["When was it founded?", "when was it  founded?"], ["When was it founded?"]),
        (["It stood at the river.", "Mara Lindqvist owns the Alder yard."], [QUESTION]),
        (["It stood at the river.", "Who owns it now?"], ["Who owns it now?"]),
    ],
)
async def test_sections_have_a_question_of_their_own(store: Store, planned: list[str], researched: list[str]) -> None:
    copied = {"title": "The Alder yard", "sections": [{"heading": "", "question": each} for each in planned]}
    runs = service(store, lambda request: copied if request.prompt == "planner/outline" else write(request))
    answer = await report(runs)
    state = (await runs.state(await runs.store.threads.get(answer.thread))).values
    assert [each["question"] for each in state["sections"].values()] == researched
    assert any("only repeats the documents" in each for each in answer.warnings) == (researched == [QUESTION])


async def test_model_checks_the_sentences_without_a_checker(store: Store) -> None:
    def say(request: Request) -> Any:
        if request.prompt == "evaluator/support":
            return "No" if "forty" in request.input["answer"] else "Yes"
        return write(request, Founding=[FOUNDED, FALSE])

    answer = await report(service(store, say, checker=False))
    assert "1868" in answer.text
    assert "forty" not in answer.text


@pytest.mark.parametrize(
    ("reply", "sections"),
    [
        ("approve", ["Founding", "Owner"]),
        ('[{"heading": "Its owner", "question": "Who owns the Alder yard?"}]', ["Its owner"]),
        ('["Who owns the Alder yard?", "When was it founded?", "Who owns it now?"]', 3),
        ("reject", None),
    ],
)
async def test_outline_waits_for_approval(store: Store, reply: str, sections: Any) -> None:
    runs = service(store)
    asked = await report(runs, approve=True, budget=Budget(max_calls=50))
    assert asked.status == "waiting"
    assert "When was the Alder yard founded?" in asked.text
    before = await runs.store.threads.get(asked.thread)
    for unusable in ("perhaps", "[]", '[{"heading": "Its owner"}]', '["Why?", 7]'):
        with pytest.raises(UsageError, match=r"cannot be used \(sections.*approve, reject, or with another list"):
            await send(runs, RunRequest(question=unusable, method="report", thread=asked.thread))
    assert await runs.store.threads.get(asked.thread) == before
    assert await finish(runs, asked.thread) == asked
    answer = await ask(runs, reply, "report", thread=asked.thread)
    if sections is None:
        assert (answer.status, answer.text) == ("refused", "The report was not written.")
        return
    headings = [line.removeprefix("## ") for line in answer.text.splitlines() if line.startswith("## ")]
    assert headings == sections or len(headings) == sections
    assert (await runs.store.threads.get(asked.thread)).options.budget == Budget(max_calls=50)
    with pytest.raises(RunError, match="was used already"):
        await send(runs, RunRequest(question="approve", method="report", thread=asked.thread))


@pytest.mark.parametrize("fails_at", range(1, 6))
async def test_resumed_report_repeats_no_call(store: Store, fails_at: int) -> None:
    model = FailingLate(down_once(write, fails_at))
    runs = service(store, model)
    id = await runs.start(RunRequest(question=QUESTION, method="report", values={"method": "plain-rag", "passages": 1}))
    with pytest.raises(ModelUnavailable):
        await finish(runs, id)
    answer = await finish(runs, id)
    del model.requests[fails_at - 1]
    ids = [request.call_id for request in model.requests]
    assert len(ids) == len(set(ids)) == 5
    assert answer.text == (await report(service(store))).text


@pytest.mark.parametrize(("most", "status"), [(1, "out_of_budget"), (4, "out_of_budget"), (5, "answered")])
async def test_sections_share_the_budget(store: Store, most: int, status: str) -> None:
    answer = await report(service(store), budget=Budget(max_calls=most))
    assert answer.status == status
    assert answer.cost["calls"] <= most


async def test_section_can_be_forked_from_its_research(store: Store) -> None:
    runs = service(store)
    answer = await report(runs)
    research = (answer.hops or [])[0]["thread"]
    made = await fork_run(runs, research, at="retrieve", into="par-rag")
    assert made["thread"] != research
    made = await fork_run(runs, answer.thread, at="outline", changes={"title": "Another title"}, name="again")
    assert (await finish(runs, made["thread"])).text.startswith("# Another title")
