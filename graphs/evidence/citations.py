"""Verification of citations: a quote counts only if it is literally in a passage that the run was shown."""

from collections.abc import Mapping, Sequence

from sleuth.agents.formatting import Quote
from sleuth.agents.model_calls import ModelCaller
from sleuth.graphs.core import Citation
from sleuth.graphs.evidence.retrieval import Reached
from sleuth.graphs.evidence.text_spans import _sentences_with, locate, sentence_with
from sleuth.tools.types import Passage


def check(desk: ModelCaller, answer: str, quotes: Sequence[Quote], shown: Sequence[Passage]) -> list[Citation]:
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


def cited(desk: ModelCaller, answer: str, quotes: Sequence[Quote], shown: Sequence[Passage]) -> list[Citation]:
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
