"""Search-trained models: the model continues one transcript, and searches or answers with tags (Search-R1).

    (reason -> retrieve)* -> reason -> answer

For models of Search-R1 (Jin et al., 2025), StepSearch and CoRAG, each in the format that it was trained on. A reply
stops at the end of a query or an answer. A text with neither gets one correction, as Search-R1's code writes it.
Inherited notes follow the question; with them, a run searches before it answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.roles.planning import SearchResult
from sleuth.agents.roles.searching import ROLES, TAGS, Format, Transcript, Turn, parse_turn
from sleuth.graphs.core.answer import Citation
from sleuth.graphs.core.context import CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.node import Call, new_graph, node, node_with, nothing
from sleuth.graphs.core.state import Keyed, Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.citations import cite_sentence, ensure_verbatim_support
from sleuth.graphs.evidence.outcomes import as_steps, finish, stated_answer
from sleuth.graphs.evidence.retrieval import Round, make_query, search_once
from sleuth.tools.search import Mode
from sleuth.tools.text.names import find_mentions, kept_names
from sleuth.tools.types import Passage


class Settings(CheckedSettings):
    """Settings of `--set`; the numbers are those of Search-R1."""

    format: Format = Field(default="search-r1", description="the form of transcript that the model was trained on")
    max_searches: Annotated[int, InPaper(4)] = Field(
        default=10, ge=1, le=30, description="searches at most; then it has to answer (paper: 4)"
    )
    top_k: Annotated[int, InPaper(3)] = Field(default=5, ge=1, le=50, description="passages of a search (paper: 3)")
    mode: Annotated[Mode, InPaper("dense")] = Field(default="graph", description="how to search (paper: dense)")
    begin_answer: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: after the last search the model is given the opening tag of its answer"
    )


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of a search-trained model. Turns and rounds are keyed by the turn's number as text, "1" first."""

    turns: Annotated[dict[str, str], Keyed] = field(default_factory=dict)
    """What the model has written, each text up to the end of its query or answer."""
    query: str = ""
    """The query of the latest turn; empty if it has none, or was searched for."""
    rounds: Annotated[dict[str, Round], Keyed] = field(default_factory=dict)
    """The searches so far, by the turn that asked for them; a turn without one was corrected."""
    said: str | None = None
    """The model's answer, empty if it gave none; None before that."""


@node
async def reason(state: State, call: Call[Settings]) -> Update:
    """Let the model continue its transcript up to its next query, or to its answer."""
    call.require()
    settings = call.settings
    is_last = len(state.rounds) >= settings.max_searches
    transcript = _transcript(state, call, begin_answer=is_last and settings.begin_answer)
    text, reply = await call.model.ask_with_reply(ROLES[settings.format], transcript)
    tags = TAGS[settings.format]
    written = f"<{tags.answer}>{text}" if transcript.last else text
    turn = parse_turn(written, tags, is_cut=reply["finish"] == "length")
    if turn.action == "answer" and state.notes and not state.rounds:
        turn = Turn(text=f"<{tags.query}>{state.question}</{tags.query}>", action="search", content=state.question)
    update: Update = {"turns": {str(len(state.turns) + 1): turn.text}, "query": "", "said": None}
    if turn.action == "search" and not is_last:
        update["query"] = turn.content
    elif turn.action == "answer":
        update["said"] = stated_answer(turn.content, state.question)
    elif turn.action == "search" or len(state.turns) > len(state.rounds):  # an earlier turn was corrected
        reason = "searches on" if turn.action else "gave neither a query nor an answer"
        call.model.warn(f"After its last chance the model {reason}. The question stays open.")
        update["said"] = ""
    else:
        call.model.warn("The model gave neither a query nor an answer, and was corrected.")
    return update


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search passages for the query of the latest turn."""
    references = await search_once(call, make_query(call.settings, state.query, state))
    return {"query": "", "rounds": {str(len(state.turns)): Round(query=state.query, passages=references)}}


@node_with(notes_at_halt=nothing)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Return the model's answer, and cite the passages that it has used."""
    assert state.said is not None
    passages = {at: call.passages(round["passages"]) for at, round in state.rounds.items()}
    citations = _cite_used(state.said, state, passages) if state.said else []
    return finish(call.model, state, state.said, citations)


# Router


def after_reason(state: State) -> Literal["retrieve", "reason", "answer"]:
    """Route to the search, to the end, or back to the model, whose last text is then corrected."""
    if state.halted or state.said is not None:
        return "answer"
    return "retrieve" if state.query else "reason"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, reason, retrieve, answer)
    graph.add_edge(START, "reason")
    graph.add_conditional_edges("reason", after_reason)
    graph.add_edge("retrieve", "reason")
    add_evidence_check(graph, "answer")
    return graph


# What the nodes above are made of


def _transcript(state: State, call: Call[Settings], *, begin_answer: bool) -> Transcript:
    """Return the transcript so far; every search shows all its passages, also those shown before."""
    places = [(int(at), reference) for at, round in state.rounds.items() for reference in round["passages"]]
    passages = call.passages([reference for _, reference in places])
    return Transcript(
        question=state.question,
        known=as_steps(state.notes.values()),
        written=tuple(state.turns.values()),
        searches=tuple(state.rounds[at]["query"] if at in state.rounds else "" for at in state.turns),
        sources=tuple(
            SearchResult(title=each.title, text=each.text, search=at)
            for (at, _), each in zip(places, passages, strict=True)
        ),
        last=begin_answer,
    )


def _cite_used(answer: str, state: State, by_turn: Mapping[str, Sequence[Passage]]) -> list[Citation]:
    """Return citations of the passages, by the turn that asked for them, that an answer follows from.

    A passage was used if it has a name that the model wrote for the first time after it was found: the name led on to
    the next search. The sentence with the answer is cited too. If no passage has either, the sentences with the names
    of the question are cited.
    """
    earlier = set(kept_names(state.question))
    used: list[Citation] = []
    for at, passages in by_turn.items():
        earlier |= _names(text for number, text in state.turns.items() if int(number) <= int(at))
        new = _names(text for number, text in state.turns.items() if int(number) == int(at) + 1) - earlier
        used += _cite(new, passages)
    every = [passage for passages in by_turn.values() for passage in passages]
    citations = ensure_verbatim_support(answer, used, every)
    return citations or _cite(set(kept_names(state.question)), every)


def _names(texts: Iterator[str]) -> set[str]:
    return {mention.name for text in texts for mention in find_mentions(text) if mention.sure}


def _cite(names: set[str], passages: Sequence[Passage]) -> list[Citation]:
    """Return the first sentence with each of these names."""
    cited: dict[str, Citation] = {}
    for passage in passages:
        for mention in find_mentions(passage.text):
            if mention.name in names and mention.name not in cited:
                cited[mention.name] = cite_sentence(passage, mention.start)
    return list({(each["passage"], each["start"]): each for each in cited.values()}.values())


METHOD = Method(
    name="search-trained",
    line="a model that was trained to search continues one transcript, and searches wherever it writes a query",
    paper="Search-R1: training LLMs to reason and leverage search engines (Jin et al., 2025)",
    when="if vLLM serves a model of Search-R1, StepSearch or CoRAG",
    calls="2 to 5; 3 on two hops",
    answers="reason",
    graph=graph,
    settings=Settings,
)
