"""reader: answer without a language model. Search, read, search again from the best passage, cite, decide.

    retrieve -> (compare)? -> read -> (follow -> read)* -> answer

The evidence checker (`sleuth.tools.evidence_checker`) reads the passages together and returns the words that answer the
question. If they do not support an answer well, the next search starts from the names of the most relevant passage, up
to `max_searches`. An answer with less than `min_support` is refused. A question that compares two dates is answered
from the date of each: an encoder does not compare them.
"""

import asyncio
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from sleuth.graphs.core.answer import Verdict, make_verdict
from sleuth.graphs.core.context import Context, SearchSettings
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.node import Call, new_graph, node
from sleuth.graphs.core.state import PassageRef, Question, RunState, Update
from sleuth.graphs.evidence.check import (
    MIN_SUPPORT,
    ReadAnswer,
    as_evidence,
    compare_dates,
    read_answer,
    refuse,
    require_checker,
)
from sleuth.graphs.evidence.comparison import read_comparison
from sleuth.graphs.evidence.outcomes import make_note
from sleuth.graphs.evidence.retrieval import search_once, search_passages, short_names
from sleuth.tools.search import Mode

SHOWN = 10
"""Passages that are kept for the next search: the most relevant of all that were found."""


class Settings(SearchSettings):
    """Settings of `--set`."""

    renamed: ClassVar = {"hops": "max_searches"}
    top_k: int = Field(default=5, ge=1, le=100, description="passages of each search")
    max_searches: int = Field(
        default=2, ge=1, le=5, description="searches at most; each starts from a passage of the one before"
    )
    mode: Mode = Field(default="graph", description="how to search")
    min_support: float = Field(
        default=MIN_SUPPORT, ge=0, le=1, description="the least support of an answer; less is refused"
    )


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of the reader."""

    evidence: list[PassageRef] = field(default_factory=list)
    """Passages found so far, the most relevant first once they were read."""
    searched: int = 0
    """The number of searches."""
    reading: ReadAnswer | None = None
    """The answer read from them."""
    follows: bool = False
    """Another search follows: the answer has little support, and searches are left."""


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search the passages for the question, and for what is known."""
    names = short_names(note["finding"] for note in state.notes.values())
    return {"evidence": await search_once(call, call.settings.query(state.question, entities=names)), "searched": 1}


@node
async def compare(state: State, call: Call[Settings]) -> Update:
    """Search and read the date of each of the two, and answer with the one that the question asks for."""
    checker, compared = require_checker(call.context.checker), read_comparison(state.question)
    assert compared is not None
    queries = {each: call.settings.query(each) for each in compared.questions}
    references = await search_passages(call, queries)
    passages = [call.passages(list(dict.fromkeys([*state.evidence, *references[each]]))) for each in queries]
    return {"reading": await asyncio.to_thread(compare_dates, checker, compared, passages)}


@node
async def read(state: State, call: Call[Settings]) -> Update:
    """Read the passages together, and sort them by relevance; the answer with most support so far counts."""
    checker, passages = require_checker(call.context.checker), call.passages(state.evidence)
    if not passages:
        return {"reading": None, "follows": False}
    reading = await asyncio.to_thread(checker.read, state.question, as_evidence(passages))
    order = reading.by_relevance[:SHOWN]
    candidate = read_answer(state.question, reading, passages)
    if state.reading and state.reading["support"]["score"] > candidate["support"]["score"]:
        candidate = state.reading
    follows = "weak" in candidate["support"] and state.searched < call.settings.max_searches
    return {"reading": candidate, "evidence": [state.evidence[at] for at in order], "follows": follows}


@node
async def follow(state: State, call: Call[Settings]) -> Update:
    """Search with the title of the most relevant passage, for passages about its names."""
    passages = call.passages(state.evidence)
    title = passages[0].title
    names = short_names([title, state.reading["text"] if state.reading else ""])
    seen = frozenset(passage.id for passage in passages)
    query = call.settings.query(f"{state.question} {title}", hop=True, entities=names, seen=seen)
    references = await search_once(call, query)
    return {"evidence": list(dict.fromkeys([*state.evidence, *references])), "searched": state.searched + 1}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Answer with what was read if it has enough support, otherwise refuse."""
    reading = state.reading
    if reading is None:
        return {"verdict": make_verdict("unknown", "", [])}
    if reading["support"]["score"] < call.settings.min_support:
        return {"verdict": refuse(reading["support"], reading["citations"])}
    note = make_note(state.question, reading["text"], reading["citations"])
    verdict = make_verdict("answered", reading["text"], [note])
    return {"notes": {"answer": note}, "verdict": Verdict(**verdict, support=reading["support"])}


def compares(state: State) -> Literal["compare", "read"]:
    """Route to the comparison of two dates, if the question asks for one."""
    return "compare" if state.evidence and read_comparison(state.question) else "read"


def is_compared(state: State) -> Literal["answer", "read"]:
    """Route to the answer if the comparison has found it."""
    return "answer" if state.reading else "read"


def search_again(state: State) -> Literal["follow", "answer"]:
    """Route to another search while the answer has little support."""
    return "follow" if state.follows else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, retrieve, compare, read, follow, answer)
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", compares)
    graph.add_conditional_edges("compare", is_compared)
    graph.add_conditional_edges("read", search_again)
    graph.add_edge("follow", "read")
    graph.add_edge("answer", END)
    return graph


METHOD = Method(
    name="reader",
    line="answer without a language model: search, read, search again, cite",
    paper="none: our way of answering without a model server",
    when="there is no model server, or the answer is a few words of a passage",
    calls="0",
    graph=graph,
    settings=Settings,
    needs_model=False,
    needs_checker=True,
)
