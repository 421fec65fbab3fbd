"""From search to citation: what the methods share.

A citation counts only if its quote stands literally in a passage that the run was shown, at known places of it.
Where a role names the right source but misquotes it, or quotes what does not say its answer, the sentence that contains
the answer is cited instead; what does not resolve in either way is dropped and named in the warnings.
"""

import asyncio
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter

from sleuth.agents.answerer import ANSWER, AnswerInput, Final
from sleuth.agents.citation import Quote
from sleuth.agents.desk import Desk
from sleuth.agents.sources import Source
from sleuth.agents.trajectory import Step
from sleuth.graphs.answer import Citation, Note, Status, Verdict, Way
from sleuth.graphs.state import Context, Question, ask_or
from sleuth.tools.archive import Archive
from sleuth.tools.documents import Hit, Passage
from sleuth.tools.retriever import Mode, Query
from sleuth.tools.text import SENTENCE_END

_NAME_WORDS = 6
_MARKS = re.compile(r"(?<!\s)\s*+\[\d+(?:\s*,\s*\d+)*\]")


async def find(context: Context, queries: dict[str, Query]) -> dict[str, list[str]]:
    """Searches side by side and archives the passages as they are now; returns their references, for the state."""
    found = await asyncio.gather(*(context.retriever.search(query) for query in queries.values()))
    references = await asyncio.gather(*(keep(context.archive, map(_reached, hits)) for hits in found))
    return dict(zip(queries, references, strict=True))


async def keep(archive: Archive, passages: Iterable[Passage]) -> list[str]:
    """Archives passages as they are now; returns their references."""
    return await archive.keep([record(passage) for passage in passages])


def record(passage: Passage) -> str:
    """A passage as the archive holds it."""
    return json.dumps(asdict(passage), ensure_ascii=False, sort_keys=True)


async def load(archive: Archive, references: Iterable[str]) -> list[Passage]:
    """The passages behind references, as the run saw them."""
    return [passage_of(record) for record in await archive.load(references)]


def passage_of(record: str) -> Passage:
    """The passage of `record`."""
    kept = json.loads(record)
    return Reached(**kept) if "way" in kept else Passage(**kept)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached(Passage):
    """A passage found rather along a name than by its own words."""

    way: Way


def _reached(hit: Hit) -> Passage:
    if not (hit.why and hit.why.reasons and hit.why.parts["edges"] > hit.why.parts["alone"]):
        return hit.passage
    best = hit.why.reasons[0]
    if not best.source:  # the query itself has the name
        return hit.passage
    way = Way(passage=best.source, name=" ".join(best.name.split()))
    return Reached(**asdict(hit.passage), way=way)


def sources(passages: Iterable[Passage]) -> tuple[Source, ...]:
    """Passages as a role reads them; their numbers count from 1 in this order."""
    return tuple(Source(title=passage.title, text=passage.text) for passage in passages)


def check(desk: Desk, answer: str, quotes: Sequence[Quote], shown: Sequence[Passage]) -> list[Citation]:
    """The citations that hold; each that does not is reported among the desk's warnings."""
    citations: list[Citation] = []
    for quote in quotes:
        passage = shown[quote.source - 1] if quote.source <= len(shown) else None
        span = passage and (locate(quote.quote, passage.text) or sentence_with(answer, passage.text))
        if not passage or not span:
            desk.warn(f"dropped a citation of source {quote.source}: {_why(passage)}")
        elif (citation := quote_at(passage, span)) not in citations:
            citations.append(citation)
    return citations


def support(answer: str, shown: Sequence[Passage], *, beside: str = "") -> list[Citation]:
    """The first sentence shown that contains an answer, as its citation; rather one that also has `beside` in it."""
    spans = [(passage, span) for passage in shown for span in _sentences_with(answer, passage.text)]
    both = [
        (passage, (start, end)) for passage, (start, end) in spans if sentence_with(beside, passage.text[start:end])
    ]
    return [quote_at(passage, span) for passage, span in (both or spans)[:1]]


def cited(desk: Desk, answer: str, quotes: Sequence[Quote], shown: Sequence[Passage]) -> list[Citation]:
    """The citations of an answer that hold and say it, as `saying` has them; none where there is no answer."""
    return saying(answer, check(desk, answer, quotes, shown), shown) if answer else []


def saying(answer: str, citations: Sequence[Citation], shown: Sequence[Passage]) -> list[Citation]:
    """An answer's citations with what says it word for word, so far as anything shown does.

    A quote without the answer makes way for a sentence of its passage that has it, of several for the nearest one;
    not where the passage's title says it, which is about the answer as a whole. If then none says it, the first
    sentence shown that does is cited as well.
    """
    passages = {passage.id: passage for passage in shown}
    found = [_nearest_saying(answer, citation, passages) for citation in citations]
    unique = [citation for at, citation in enumerate(found) if citation not in found[:at]]
    said = any(sentence_with(answer, citation["quote"]) for citation in unique)
    return unique if said else [*unique, *support(answer, shown)]


def _nearest_saying(answer: str, citation: Citation, passages: Mapping[str, Passage]) -> Citation:
    passage = passages.get(citation["passage"])
    if not passage or any(sentence_with(answer, text) for text in (citation["quote"], passage.title)):
        return citation
    start, end = citation["start"] - passage.start, citation["end"] - passage.start
    spans = _sentences_with(answer, passage.text)
    span = min(spans, key=lambda span: max(span[0] - end, start - span[1], 0), default=None)
    return quote_at(passage, span) if span else citation


def _why(passage: Passage | None) -> str:
    return f"neither its quote nor the answer stands in {passage.id}" if passage else "no such source was shown"


def locate(quote: str, text: str) -> tuple[int, int] | None:
    """Where a quote stands in a text, in characters; letter case and runs of white space do not matter."""
    words = quote.strip().strip("\"'“”‘’").split()
    if not words:
        return None
    found = re.search(r"\s+".join(re.escape(word) for word in words), text, re.IGNORECASE)
    return found.span() if found else None


def sentence_with(answer: str, text: str) -> tuple[int, int] | None:
    """The sentence or line of a text, headings left out, in which an answer stands as whole words, in characters."""
    return next(_sentences_with(answer, text), None)


def _sentences_with(answer: str, text: str) -> Iterator[tuple[int, int]]:
    words = clean(answer).rstrip(".").split()
    if words and " ".join(words).casefold() not in ("yes", "no"):  # a "no" stands in sentences of all kinds
        ends = [end.span() for end in SENTENCE_END.finditer(text)]
        spans = (_sentence_around(found.span(), ends, text) for found in _whole(words, text))
        yield from (span for span in spans if not text.startswith("#", span[0]))


def _whole(words: Sequence[str], text: str) -> Iterator[re.Match[str]]:
    pattern = r"(?<!\w)" + r"\s+".join(re.escape(word) for word in words) + r"(?!\w)"
    return re.finditer(pattern, text, re.IGNORECASE)


def _sentence_around(span: tuple[int, int], ends: Sequence[tuple[int, int]], text: str) -> tuple[int, int]:
    """The sentence around a span, given where white space ends the sentences of the text."""
    after = bisect_left(ends, span[1], key=itemgetter(0))
    before = bisect_right(ends, span[0], hi=after, key=itemgetter(1))
    return ends[before - 1][1] if before else 0, ends[after][0] if after < len(ends) else len(text.rstrip())


def clean(answer: str) -> str:
    """An answer without citation marks such as [2] and without white space around it."""
    return _MARKS.sub("", answer).strip()


def quote_at(passage: Passage, span: tuple[int, int]) -> Citation:
    """A citation of what stands at these characters of a passage."""
    start, end = span
    citation = Citation(
        passage=passage.id,
        document=passage.document_id,
        title=passage.title,
        quote=passage.text[start:end],
        start=passage.start + start,
        end=passage.start + end,
    )
    return Citation(**citation, why=passage.way) if isinstance(passage, Reached) else citation


def note(question: str, finding: str, citations: list[Citation], remark: str = "") -> Note:
    """A finding and where it stands."""
    passages = list(dict.fromkeys(citation["passage"] for citation in citations))
    written = Note(question=question, finding=finding, passages=passages, citations=citations)
    return Note(**written, remark=remark) if remark else written


def names_in(findings: Iterable[str]) -> tuple[str, ...]:
    """Those findings that are names, or as short as names, for a search that builds on them."""
    short = (finding.strip() for finding in findings if 0 < len(finding.split()) <= _NAME_WORDS)
    return tuple(dict.fromkeys(name for name in short if name.casefold() not in ("yes", "no")))


def as_query(text: str, state: Question, *, k: int, mode: Mode, seen: Iterable[str]) -> Query:
    """A question's next query, for passages not seen yet: it builds on those findings whose names it says."""
    names = names_in(found["finding"] for found in state.notes.values())
    said = tuple(name for name in names if any(_whole(name.split(), text)))
    return Query(text=text, k=k, mode=mode, hop=text != state.question, entities=said, seen=frozenset(seen))


def known_steps(notes: Iterable[Note]) -> tuple[Step, ...]:
    """Notes as the roles see them."""
    return tuple(Step(question=note["question"], answer=note["finding"] or "not found") for note in notes)


def conclude(status: Status, text: str, notes: Iterable[Note]) -> Verdict:
    """The end of a run; only an answer, also one cut short by the budget, cites, and only what its notes stand on."""
    cites = text and status in ("answered", "out_of_budget")
    every = [citation for note in notes for citation in note.get("citations", [])] if cites else []
    places = [{**citation, "why": None} for citation in every]
    unique = [citation for at, citation in enumerate(every) if places[at] not in places[:at]]
    return Verdict(status=status, text=text, citations=unique)


async def final_answer(desk: Desk, question: str, notes: Sequence[Note]) -> Verdict:
    """The question answered from what was found out; "unknown" where that does not tell."""
    given = AnswerInput(question=question, trajectory=known_steps(notes))
    final = await ask_or(desk, ANSWER, given, Final(known=False), "The question stays open.")
    text = clean(final.answer)
    return answered(desk, text, notes) if final.known and text else conclude("unknown", "", [])


def answered(desk: Desk, text: str, notes: Iterable[Note]) -> Verdict:
    """An answer with the citations of its notes; that it has none is worth a warning."""
    verdict = conclude("answered", text, notes)
    if not verdict["citations"]:
        desk.warn("nothing that was read supports this answer word for word")
    return verdict


def ended(desk: Desk, state: Question, text: str, citations: list[Citation]) -> tuple[dict[str, Note | None], Verdict]:
    """The end of a run: an answer, which is also a note, or "unknown" where the text is empty."""
    if not text:
        return {}, conclude("unknown", "", [])
    found = note(state.question, text, citations)
    return {"answer": found}, answered(desk, text, [*state.notes.values(), found])
