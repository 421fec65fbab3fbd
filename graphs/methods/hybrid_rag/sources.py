"""What the sources of the hybrid system give, each in its own way: documents, a calculator, a knowledge graph.

Whatever keeps a source from giving anything is a line that says so; it never ends a run.
"""

import asyncio
import re
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TypeVar

from sleuth.agents.formatting import Labelled
from sleuth.agents.model_calls import Desk
from sleuth.agents.roles.hybrid import CHOOSE_CALLS, NAME_ENTITIES, Asked, Calls, ChooseInput, Entities, Recollection
from sleuth.graphs.core import Context, ask_or
from sleuth.graphs.evidence import clean
from sleuth.graphs.methods.hybrid_rag.references import Finding, is_table
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.tools.documents import split
from sleuth.tools.errors import SleuthError, UsageError
from sleuth.tools.search import Query
from sleuth.tools.sources import NotCalculable, calculate
from sleuth.tools.sources.knowledge_graph import KnowledgeGraph, Lookup, NamedEntity, deduplicate, explore, look_up
from sleuth.tools.sources.web_pages import PageRetriever, PageText, table_passages
from sleuth.tools.types import Passage

T = TypeVar("T")

UNKNOWN = "I don't know"
INVALID = "Invalid question"

_NOTHING = "nothing is known"
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})")
_AMERICAN = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")


def now() -> str:
    """The day in UTC: that a prompt changes with every second would help nobody."""
    return datetime.now(UTC).date().isoformat()


def day_of(moment: str) -> date | None:
    """The day in a time as people or the benchmark write it (2024-03-13, 03/13/2024); None where it names none."""
    if found := _ISO.search(moment):
        year, month, day = map(int, found.groups())
    elif found := _AMERICAN.search(moment):
        month, day, year = map(int, found.groups())
    else:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """Passages of text and of tables, best first, and what was left out of them."""

    texts: tuple[Passage, ...] = ()
    tables: tuple[Passage, ...] = ()
    left_out: tuple[str, ...] = ()


async def found_passages(context: Context, question: str, settings: Settings) -> Gathered:
    """What a search finds; of pages handed in also the tables that it did not find, last, as far as there is room."""
    retriever = context.retriever
    if context.pages and not settings.sentences:
        retriever = PageRetriever(windows(context.pages), context.embedder)
    wanted = settings.chunks * 2 if settings.tables else settings.chunks
    found = [hit.passage for hit in await retriever.search(Query(text=question, k=wanted, mode=settings.mode))]
    texts = tuple(each for each in found if not is_table(each))[: settings.chunks]
    if not settings.tables:
        return Gathered(texts=texts)
    handed_in = [each for page in context.pages for each in table_passages(page)]
    every = {each.id: each for each in [*filter(is_table, found), *handed_in]}
    tables = _begun_within(every.values(), settings.max_table_characters)
    lost = len(every) - len(tables)
    left_out = (f"{lost} pieces of tables are left out: there is room for {len(tables)}",) if lost else ()
    return Gathered(texts=texts, tables=tables, left_out=left_out)


def _begun_within(passages: Iterable[Passage], room: int) -> tuple[Passage, ...]:
    """The first passages, up to the one that uses up the room."""
    kept: list[Passage] = []
    for passage in passages:
        if room <= 0:
            break
        kept.append(passage)
        room -= len(passage.text)
    return tuple(kept)


def windows(pages: Sequence[PageText]) -> list[Passage]:
    """The texts of pages in windows of one size, whatever their sentences are: what a plain system does."""
    return [
        Passage(
            id=f"{page.id}@{start}-{end}",
            document_id=page.id,
            title=page.name,
            text=page.text[start:end],
            start=start,
            end=end,
        )
        for page in pages
        for start, end in split(page.text, "text/plain")
    ]


async def or_without(source: str, gathering: Awaitable[T], nothing: T, *, seconds: float) -> tuple[T, list[str]]:
    """What a source gives; where it fails or takes too long `nothing`, and a line that says why."""
    try:
        async with asyncio.timeout(seconds):
            return await gathering, []
    except UsageError:  # a setting that a person can mend
        raise
    except (SleuthError, TimeoutError) as error:
        return nothing, [f"{source} is missing: {str(error) or f'it took longer than {seconds:g} s'}"]


def labelled(texts: Iterable[Passage], tables: Iterable[Passage]) -> tuple[Labelled, ...]:
    """Texts and tables as a role reads them."""
    return (
        *(Labelled(kind="text", title=each.title, text=each.text) for each in texts),
        *(Labelled(kind="table", title=each.title, text=each.text) for each in tables),
    )


def evaluated(expressions: Iterable[str], today: date | None) -> tuple[list[Finding], list[str]]:
    """Each expression once with its value, and a line that counts those that have none."""
    wanted = list(dict.fromkeys(each.strip() for each in expressions if each.strip()))
    found: list[Finding] = []
    faults: list[str] = []
    for expression in wanted:
        try:
            done = calculate(expression, today=today)
        except NotCalculable as error:
            faults.append(str(error))
        else:
            found.append(Finding(title=done.expression, text=f"{done.expression} = {done.text}"))
    lines = [f"{len(faults)} of {len(wanted)} expressions have no value: {faults[0]}"] if faults else []
    return found, lines


def recollected(said: Recollection) -> Finding:
    """What a model has said of itself, as a reference."""
    text = INVALID if said.false_premise else clean(said.answer) if said.known else ""
    return Finding(title="answered without sources", text=text or UNKNOWN)


async def chosen(asking: Desk, graph: KnowledgeGraph, asked: Asked, *, route: str) -> Entities | Calls:
    """What to look up, by the model: entities for the rules, or calls (the route "functions")."""
    loss = "The knowledge graph is not asked."
    if route == "functions":
        signatures = tuple(each.signature() for each in graph.functions)
        given = ChooseInput(question=asked.question, asked_at=asked.asked_at, functions=signatures)
        return await ask_or(asking, CHOOSE_CALLS, given, Calls(calls=[]), loss)
    return await ask_or(asking, NAME_ENTITIES, asked, Entities(entities=[]), loss)


async def explored(
    graph: KnowledgeGraph, said: Entities | Calls, asked: Asked, *, domain: str | None, seconds: float
) -> tuple[list[Finding], list[str]]:
    """What a graph says to the calls chosen, or about the entities named; what failed is a line each."""
    if isinstance(said, Calls):
        calls = [(each.function, {one.name: one.value for one in each.arguments}) for each in said.calls]
        lookups = await look_up(graph, calls, seconds=seconds)
    else:
        named, today = (
            deduplicate(NamedEntity(name=each.name.strip(), kind=each.kind) for each in said.entities),
            day_of(asked.asked_at),
        )
        day = today.isoformat() if today else ""
        lookups = await explore(graph, named, asked.question, domain=domain, today=day, seconds=seconds)
    return [Finding(title=each.call, text=each.text) for each in lookups if each.text], _problems(lookups)


def _problems(lookups: Iterable[Lookup]) -> list[str]:
    """That nothing is known is an answer."""
    return [f"{each.call}: {each.problem}" for each in lookups if each.problem not in ("", _NOTHING)]
