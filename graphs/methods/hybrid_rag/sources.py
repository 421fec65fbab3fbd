"""Sources of the hybrid system: documents, a calculator, a knowledge graph.

A failure of a source becomes a warning; it never ends a run.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date

from typing_extensions import TypedDict

from sleuth.agents.formatting import LabeledSource
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles.hybrid import CHOOSE_CALLS, NAME_ENTITIES, Asked, Calls, ChooseInput, Entities
from sleuth.agents.roles.judging import Domain
from sleuth.graphs.core.context import Context, KnowledgeGraph
from sleuth.graphs.evidence.retrieval import search_notes
from sleuth.graphs.methods.hybrid_rag.calculator import NotCalculable, calculate
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.functions import look_up
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.rules import NamedEntity, deduplicate, explore
from sleuth.graphs.methods.hybrid_rag.references import Finding, is_table
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.tools.documents.chunking import split
from sleuth.tools.search import Retriever
from sleuth.tools.search.langchain import traced_search
from sleuth.tools.types import Hit, Passage
from sleuth.tools.web_pages.page import PageText
from sleuth.tools.web_pages.retriever import FusedRetriever, PageRetriever, table_passages, text_passages

SearchedPassages = tuple[list[Passage], list[Passage], list[str]]
"""Passages of text and of tables, best first, and warnings about the search and omitted ones."""

MOST_SEARCHED = 5_000
"""Passages after which no further texts are searched for behind tables."""
_NOTHING = "nothing is known"
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})")
_AMERICAN = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")


class PredictedAttributes(TypedDict):
    """The attributes of a question (section 4.2)."""

    domain: Domain
    dynamic: bool


def parse_day(moment: str) -> date | None:
    """Return the day of a time as people or the benchmark write it (2024-03-13, 03/13/2024); None if it has none."""
    if match := _ISO.search(moment):
        year, month, day = map(int, match.groups())
    elif match := _AMERICAN.search(moment):
        month, day, year = map(int, match.groups())
    else:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


async def find_passages(context: Context, question: str, settings: Settings) -> SearchedPassages:
    """Search passages; given pages also add the tables that the search did not find, last, while there is room."""
    retriever = context.retriever
    if context.pages and not settings.sentences:
        retriever = _over(_windows(context.pages), context)
    elif context.pages and settings.truncate:
        cut = [each for page in context.pages for each in text_passages(page, truncate=True)]
        retriever = _over([*cut, *_tables(context.pages)], context)
    hits = await _search(retriever, question, settings)
    passages, notes = [hit.passage for hit in hits], search_notes(hits)
    texts = [each for each in passages if not is_table(each)][: settings.chunks]
    if not settings.tables:
        return texts, [], notes
    every = {each.id: each for each in [*filter(is_table, passages), *_tables(context.pages)]}
    tables: list[Passage] = []
    room = settings.max_table_characters
    for table in every.values():
        if room <= 0:
            break
        tables.append(table)
        room -= len(table.text)
    lost = len(every) - len(tables)
    left_out = [f"{lost} pieces of tables are left out: there is room for {len(tables)}"] if lost else []
    return texts, tables, [*notes, *left_out]


async def _search(retriever: Retriever, question: str, settings: Settings) -> list[Hit]:
    """Return hits until enough of them are texts: tables, which may be in many pieces, do not displace them."""
    k = settings.chunks * 2 if settings.tables else settings.chunks
    while True:
        hits = await traced_search(retriever, settings.query(question, k=k))
        enough = sum(not is_table(hit.passage) for hit in hits) >= settings.chunks
        if enough or len(hits) < k or k >= MOST_SEARCHED:
            return hits
        k *= 5


def _over(passages: Sequence[Passage], context: Context) -> Retriever:
    """Return a retriever over passages of the pages, and over the collection if the run searches it too."""
    over = PageRetriever(passages, context.embedder)
    return context.retriever.replace_first(over) if isinstance(context.retriever, FusedRetriever) else over


def _tables(pages: Sequence[PageText]) -> list[Passage]:
    return [each for page in pages for each in table_passages(page)]


def _windows(pages: Sequence[PageText]) -> list[Passage]:
    """Cut the texts of pages into windows of one size, regardless of sentences, as a plain system does."""
    return [
        Passage(id=f"{page.id}@{start}-{end}", title=page.name, document_id=page.id, text=text, start=start, end=end)
        for page in pages
        for start, end in split(page.text, "text/plain")
        for text in [page.text[start:end]]
    ]


def label_sources(texts: Iterable[Passage], tables: Iterable[Passage]) -> tuple[LabeledSource, ...]:
    """Return texts and tables in the form that a role reads."""
    return (
        *(LabeledSource(kind="text", title=each.title, text=each.text) for each in texts),
        *(LabeledSource(kind="table", title=each.title, text=each.text) for each in tables),
    )


def evaluate_expressions(expressions: Iterable[str], today: date | None) -> tuple[list[Finding], list[str]]:
    """Return each distinct expression with its value, and a line that counts those without one."""
    distinct = list(dict.fromkeys(each.strip() for each in expressions if each.strip()))
    findings: list[Finding] = []
    faults: list[str] = []
    for expression in distinct:
        try:
            done = calculate(expression, today=today)
        except NotCalculable as error:
            faults.append(str(error))
        else:
            findings.append(Finding(title=done.expression, text=f"{done.expression} = {done.text}"))
    lines = [f"{len(faults)} of {len(distinct)} expressions have no value: {faults[0]}"] if faults else []
    return findings, lines


async def query_graph(
    model: ModelCaller, graph: KnowledgeGraph, asked: Asked, domain: str | None, settings: Settings
) -> tuple[list[Finding], list[str]]:
    """Let the model name entities for the rules, or choose calls (the route "functions"), and look these up.

    Each failure is a line.
    """
    loss, seconds = "The knowledge graph is not asked.", settings.source_seconds
    if settings.route == "functions":
        signatures = tuple(each.signature() for each in graph.functions)
        request = ChooseInput(question=asked.question, asked_at=asked.asked_at, functions=signatures)
        chosen = await model.ask_or(CHOOSE_CALLS, request, Calls(calls=[]), loss)
        calls = [(each.function, {one.name: one.value for one in each.arguments}) for each in chosen.calls]
        lookups = await look_up(graph, calls, seconds=seconds)
    else:
        reply = await model.ask_or(NAME_ENTITIES, asked, Entities(entities=[]), loss)
        named = deduplicate(NamedEntity(name=each.name.strip(), kind=each.kind) for each in reply.entities)
        today = parse_day(asked.asked_at)
        day = today.isoformat() if today else ""
        lookups = await explore(graph, named, asked.question, domain=domain, today=day, seconds=seconds)
    problems = [f"{each.call}: {each.problem}" for each in lookups if each.problem not in ("", _NOTHING)]
    return [Finding(title=each.call, text=each.text) for each in lookups if each.text], problems
