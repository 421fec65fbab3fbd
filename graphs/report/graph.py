"""report: research the parts of a question, and write sections in which every sentence has its sources.

    outline -> approve? -> (research a section)* -> write -> review -> (retrieve -> review)? -> collate

Each section is researched by another method in a thread of its own, which can be shown, resumed and forked. Sentences
are written from passages only. One that its passages do not support is searched for once more, and then left out.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import Field as Setting
from typing_extensions import TypedDict

from sleuth.agents.formatting import Step
from sleuth.agents.roles import judging
from sleuth.agents.roles.inputs import SourcesInput
from sleuth.agents.roles.reporting import (
    GUIDED_SECTIONS,
    MAX_SECTIONS,
    OUTLINE,
    WRITE_SECTION,
    Outline,
    OutlinedSection,
    Section,
    SectionInput,
)
from sleuth.graphs.core.answer import Note, Subrun, Verdict, make_verdict
from sleuth.graphs.core.approval import AwaitsApproval, Reply, ask_approval, read_rows
from sleuth.graphs.core.context import DEFAULT_METHOD, Context, SearchSettings, SubrunResult
from sleuth.graphs.core.method import REPORT, Method, summarize_update
from sleuth.graphs.core.node import Call, gather_by_key, new_graph, node, node_with
from sleuth.graphs.core.state import Keyed, PassageRef, Question, RunState, SharesBudget, Update
from sleuth.graphs.core.subrun import new_subrun, prefix_nodes, run_subrun, with_result
from sleuth.graphs.delegation import DelegatingSettings, MethodName
from sleuth.graphs.evidence.check import as_evidence, cited_passages
from sleuth.graphs.evidence.citations import cite_closest
from sleuth.graphs.evidence.outcomes import make_note, with_sentence_ends, yes_probability
from sleuth.graphs.evidence.retrieval import as_sources, search_once, search_passages
from sleuth.graphs.evidence.text_spans import numbers_in
from sleuth.tools.search import DocumentReader
from sleuth.tools.text.normalization import comparison_key, single_line
from sleuth.tools.types import Passage

_FIRST_SEARCH = 8
"""Passages from which the outline is made."""


Sections = Annotated[list[OutlinedSection], read_rows(), Setting(max_length=MAX_SECTIONS)]
"""Sections as JSON, or plain questions."""


class Settings(DelegatingSettings, SearchSettings):
    """Settings of `--set`."""

    renamed: ClassVar = {"min_support": "min_sentence_support"}
    method: MethodName = Setting(default=DEFAULT_METHOD, description="what researches the sections")
    sections: Sections = Setting(
        default=[],
        description='the outline as JSON: [{"heading": "Costs", "question": "What does it cost?"}]; default: planned',
    )
    max_sections: int = Setting(default=6, ge=1, le=GUIDED_SECTIONS, description="sections of a planned outline")
    passages: int = Setting(
        default=4, ge=0, le=32, description="passages that a search finds for a section, besides those of its research"
    )
    min_sentence_support: float = Setting(
        default=0.5, ge=0, le=1, description="the least support of a sentence that is kept"
    )
    approve: bool = Setting(default=False, description="the outline waits for approval")


class EditedOutline(TypedDict):
    """The sections to write instead of those that were shown."""

    sections: Annotated[Sections, Setting(min_length=1)]


OutlineReply = Reply[EditedOutline]


class PlannedSection(TypedDict):
    """A section: its heading, and the question that its research answers."""

    heading: str
    question: str


class DraftSentence(TypedDict):
    """A sentence that is not reviewed yet: its section, and the passages that it names.

    `is_retried`: the passages are those of a search for the sentence itself.
    """

    section: str
    text: str
    passages: list[PassageRef]
    is_retried: bool


@dataclass(frozen=True, kw_only=True)
class State(AwaitsApproval, RunState):
    """State of a report. Sections are keyed by their number as text, sentences by `section.sentence`."""

    title: str = ""
    """The title."""
    sections: Annotated[dict[str, PlannedSection], Keyed] = field(default_factory=dict)
    """The outline."""
    hops: Annotated[dict[str, Subrun], Keyed] = field(default_factory=dict)
    """The research of each section."""
    sources: Annotated[dict[str, list[PassageRef]], Keyed] = field(default_factory=dict)
    """The passages of each section."""
    drafts: Annotated[dict[str, DraftSentence], Keyed] = field(default_factory=dict)
    """The sentences that are not reviewed yet; a reviewed one is a note, or left out."""


@dataclass(frozen=True, kw_only=True)
class ResearchState(SharesBudget, State):
    """Input of `research`: the question of one section."""

    section: str = ""
    """Its number."""


@node
async def outline(state: State, call: Call[Settings]) -> Update:
    """Plan the sections from a first search, unless they are given."""
    first: Update = {"decision": "" if call.settings.approve else "approve"}
    if chosen := call.settings.sections:
        return {**first, "title": state.question, "sections": _numbered(chosen)}
    call.require()
    query = call.settings.query(state.question, k=_FIRST_SEARCH, mode="hybrid")
    passages = call.passages(await search_once(call, query))
    single = Outline(sections=[OutlinedSection.model_construct(heading="", question=state.question)])
    loss = "The report has one section."
    read = SourcesInput(question=state.question, sources=as_sources(passages))
    made = await call.model.ask_or(OUTLINE, read, single, loss)
    if sections := _with_own_question(made.sections, passages):
        title = _as_heading(made.title) or state.question
    else:
        title, sections = state.question, single.sections
        call.model.warn(f"The outline only repeats the documents. {loss}")
    return {**first, "title": title, "sections": _numbered(sections[: call.settings.max_sections])}


async def approve(state: State) -> Update:
    """Wait until the outline is approved, edited or rejected."""
    about = f"The sections of a report about: {state.question}"
    rows = [*state.sections.values()]
    decision, edited = ask_approval(OutlineReply, "write_report", {"sections": rows}, about)
    sections = {**dict.fromkeys(state.sections), **_numbered(edited["sections"])} if edited else {}
    return {"decision": decision, "sections": sections}


@node_with(parallel_nodes=lambda state: state.sharing)
async def research(state: ResearchState, call: Call[Settings]) -> Update:
    """Answer the question of a section with another method, in its own thread, and search for further passages."""
    if not call.affords(2):  # at least one call of the method, and one to write the section
        return {}
    settings, number = call.settings, state.section
    subrun = new_subrun(settings.method, f"section {number}")
    end = await run_subrun(
        call, method=settings.method, number=int(number), values=settings.method_settings, reserved_calls=1
    )
    query = settings.query(state.question, k=settings.passages, mode="hybrid")
    references = await search_once(call, query) if settings.passages else []
    read = call.passages(references)
    cited = await _cited(end, read, call)
    ids = {passage.id for passage in cited}
    others = [each for each, passage in zip(references, read, strict=True) if passage.id not in ids]
    sources = [*await call.archive(cited), *others]
    warnings = [f"section {number}: {warning}" for warning in end.warnings]
    calls = {f"{number} {id}": record for id, record in prefix_nodes(settings.method, end).items()}
    hops = {number: with_result(subrun, end, [])}
    return {"hops": hops, "sources": {number: sources}, "calls": calls, "warnings": warnings}


@node
async def write(state: State, call: Call[Settings]) -> Update:
    """Write the sections from their passages."""
    sections = [key for key in state.sections if state.sources.get(key)]
    halted = len(state.hops) < len(state.sections)
    while sections and not call.affords(len(sections)):
        sections.pop()
        halted = True
    passages = {key: call.passages(state.sources[key]) for key in sections}
    written = await gather_by_key({key: _section(state, key, passages[key], call) for key in sections})
    drafts = dict[str, DraftSentence]()
    for key in sections:
        sentences = {comparison_key(each.text): each for each in reversed(written[key].sentences)}  # each once
        for at, sentence in enumerate(reversed(sentences.values()), start=1):
            text = single_line(sentence.text)
            named = [state.sources[key][each - 1] for each in sentence.sources if 0 < each <= len(passages[key])]
            drafts[f"{key}.{at}"] = DraftSentence(section=key, text=text, passages=named, is_retried=False)
    return {"drafts": drafts, "halted": halted}


@node
async def review(state: State, call: Call[Settings]) -> Update:
    """Keep the sentences that their passages support; the others are searched for once more, and then left out."""
    named = {key: call.passages(draft["passages"]) for key, draft in state.drafts.items()}
    if call.context.checker is None:
        call.require(len(named))
    support = await gather_by_key(
        {key: _support(state, draft, named[key], call) for key, draft in state.drafts.items()}
    )
    supported = {
        key: draft for key, draft in state.drafts.items() if support[key] >= call.settings.min_sentence_support
    }
    notes = {
        key: make_note(
            state.sections[draft["section"]]["question"], draft["text"], cite_closest(draft["text"], named[key])
        )
        for key, draft in supported.items()
    }
    left_out = {key: draft for key, draft in state.drafts.items() if key not in supported and draft["is_retried"]}
    warnings = [f"left out, as no source supports it: {draft['text']}" for draft in left_out.values()]
    return {"notes": notes, "drafts": dict.fromkeys([*supported, *left_out]), "warnings": warnings}


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search for the sentences that their passages do not support."""
    k = max(1, call.settings.passages)
    queries = {key: call.settings.query(draft["text"], k=k, mode="hybrid") for key, draft in state.drafts.items()}
    references = await search_passages(call, queries)
    return {
        "drafts": {
            key: draft | {"passages": references[key], "is_retried": True} for key, draft in state.drafts.items()
        }
    }


@node
async def collate(state: State, call: Call[Settings]) -> Update:
    """Put the sections together, with what was not found at the end."""
    if state.decision == "reject":
        return {"verdict": Verdict(status="refused", text="The report was not written.", citations=[])}
    text, missing = f"# {state.title}", ""
    sentences: list[Note] = []
    ends: list[int] = []
    for number, section in state.sections.items():
        if not (own := _sentences(state.notes, number)):
            missing += f"\n- {section['question']}"
            continue
        text += f"\n\n## {section['heading']}\n\n"
        for at, note in enumerate(own):
            text += f"{' ' if at else ''}{note['finding']}"
            ends.append(len(text))
        sentences += own
    if not sentences:
        return {"verdict": make_verdict("out_of_budget" if state.halted else "unknown", "", [])}
    text += f"\n\nNot found in the documents:\n{missing}" if missing else ""
    verdict = make_verdict("out_of_budget" if state.halted else "answered", text, sentences)
    return {"verdict": with_sentence_ends(verdict, sentences, ends)}


# Routers


def begin(state: State) -> list[Send] | Literal["approve", "collate"]:
    """Route to the person, who approves the outline, or send each section to its research."""
    if state.decision == "reject" or state.halted:
        return "collate"
    if not state.decision:
        return "approve"
    shared = {"sharing": len(state.sections), "spent": state.spending()}
    return [
        Send("research", {**shared, "question": section["question"], "section": number})
        for number, section in state.sections.items()
    ]


def settle(state: State) -> Literal["retrieve", "collate"]:
    """Route to another search while sentences are not settled."""
    return "retrieve" if state.drafts and not state.halted else "collate"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, outline, approve, research, write, review, retrieve, collate)
    graph.add_edge(START, "outline")
    graph.add_conditional_edges("outline", begin, ["approve", "research", "collate"])
    graph.add_conditional_edges("approve", begin, ["approve", "research", "collate"])
    graph.add_edge("research", "write")
    graph.add_edge("write", "review")
    graph.add_conditional_edges("review", settle)
    graph.add_edge("retrieve", "review")
    graph.add_edge("collate", END)
    return graph


# What the nodes above are made of


def _with_own_question(sections: Sequence[OutlinedSection], passages: Sequence[Passage]) -> list[OutlinedSection]:
    """Return the sections whose question is neither a repetition nor copied from a passage, as small models do."""
    texts, own = [comparison_key(passage.text) for passage in passages], dict[str, OutlinedSection]()
    for section in sections:
        asked = comparison_key(section.question)
        if asked and not any(asked in text for text in texts):
            own.setdefault(asked, section)
    return list(own.values())


def _numbered(sections: Sequence[OutlinedSection]) -> dict[str, PlannedSection]:
    return {
        str(number): PlannedSection(
            heading=_as_heading(each.heading or each.question), question=single_line(each.question)
        )
        for number, each in enumerate(sections, start=1)
    }


def _as_heading(text: str) -> str:
    return single_line(text).lstrip("# ").rstrip("?")


async def _cited(end: SubrunResult, read: Sequence[Passage], call: Call[Settings]) -> list[Passage]:
    """Return the passages that the research cites; its quotes where they cannot be read."""
    cited = [*end.verdict["citations"], *(each for note in end.notes.values() for each in note.get("citations", []))]
    reader = call.context.retriever
    documents = dict.fromkeys(each["document"] for each in cited if each["passage"])
    contents = [await reader.passages_of(id) for id in documents] if isinstance(reader, DocumentReader) else []
    return cited_passages(cited, [*read, *(passage for document in contents for passage in document)])


async def _section(state: State, number: str, passages: Sequence[Passage], call: Call[Settings]) -> Section:
    question, subrun = state.sections[number]["question"], state.hops[number]
    steps = (Step(question=question, answer=subrun["text"]),) if subrun["status"] == "answered" else ()
    request = SectionInput(question=question, report=state.question, known=steps, sources=as_sources(passages))
    return await call.model.ask_or(WRITE_SECTION, request, Section(), f"Section {number} is left out.")


async def _support(state: State, draft: DraftSentence, passages: Sequence[Passage], call: Call[Settings]) -> float:
    """Return how well passages support a sentence; a number that none of them contains has no support."""
    sources = " ".join(f"{each.title} {each.text}" for each in passages)
    if not passages or numbers_in(draft["text"]) - numbers_in(sources):
        return 0.0
    if checker := call.context.checker:
        return (await asyncio.to_thread(checker.check, draft["text"], as_evidence(passages))).supported
    question = state.sections[draft["section"]]["question"]
    request = judging.SupportInput(question=question, answer=draft["text"], sources=as_sources(passages))
    return await yes_probability(call.model, judging.SUPPORT, request, otherwise=0.0, loss="The sentence is left out.")


def _sentences(notes: Mapping[str, Note], section: str) -> list[Note]:
    """Return the sentences of a section, in their order."""
    own = (key for key in notes if re.fullmatch(rf"{section}\.\d+", key))
    return [notes[key] for key in sorted(own, key=lambda key: int(key.partition(".")[2]))]


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    sections = update.get("sections") or {}
    lines = [f"{number}. {section['question']}" for number, section in sections.items() if section]
    lines += [f"section {at}: {each['status'].replace('_', ' ')}" for at, each in (update.get("hops") or {}).items()]
    return [*lines, *summarize_update(update)]


METHOD = Method(
    name=REPORT,
    line="research the parts of a question, and write sections in which every sentence has its sources",
    paper="none: ours",
    when="the answer takes pages",
    calls="the research of each section, and one to write it",
    graph=graph,
    settings=Settings,
    approval=OutlineReply,
    summarize_update=summarize,
)
