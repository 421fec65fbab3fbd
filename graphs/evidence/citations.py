"""Verification of citations: a quote counts only if a passage shown to the model contains it literally.

A quote with the wrong number is looked for in all shown passages. If it is in none, a sentence of the named source is
cited that contains the answer and belongs to the question. Otherwise the citation is dropped, with a warning.
"""

from collections.abc import Mapping, Sequence

from sleuth.agents.formatting import UNNAMED, Quote
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.graphs.core.answer import Citation
from sleuth.graphs.core.passages import RetrievedPassage
from sleuth.graphs.evidence.text_spans import content_words, find_quote, find_sentence, find_sentences, find_words
from sleuth.tools.evidence_checker.checker import Reading
from sleuth.tools.places import quote_location
from sleuth.tools.text.tokenization import Span, sentence_spans
from sleuth.tools.types import Passage

RELEVANT = 0.5
"""The least relevance of a passage that is cited without the answer in it."""


def verify_quotes(
    model: ModelCaller, answer: str, quotes: Sequence[Quote], passages: Sequence[Passage], *, question: str = ""
) -> list[Citation]:
    """Return the citations that can be verified, and warn of each other quote; none without an answer."""
    citations: list[Citation] = []
    if not answer:
        return citations
    answering = [passage for passage in passages if find_sentence(answer, passage.text)]
    for quote in quotes:
        named = passages[quote.source - 1 : quote.source]
        others = [*answering, *passages] if named or quote.source == UNNAMED else []
        places = ((passage, find_quote(quote.quote, passage.text)) for passage in [*named, *others])
        passage, span = next((place for place in places if place[1]), (None, None))
        if not passage and named:
            passage, span = named[0], next(iter(_answering(answer, named[0], question)), None)
        if not passage or not span:
            reason = f"neither its quote nor the answer is in {passage.id}" if passage else "no such source was shown"
            model.warn(f"dropped a citation of source {quote.source}: {reason}")
        elif (citation := citation_at(passage, span)) not in citations:
            citations.append(citation)
    return citations


def _answering(answer: str, passage: Passage, question: str) -> list[Span]:
    """Return the sentences of a passage with the answer that have a word of the question, also in its title."""
    asked, spans = content_words(question) - content_words(answer), find_sentences(answer, passage.text)
    if not asked:
        return list(spans)
    return [(start, end) for start, end in spans if asked & content_words(f"{passage.title} {passage.text[start:end]}")]


def find_support(
    answer: str, passages: Sequence[Passage], *, containing: str = "", question: str = ""
) -> list[Citation]:
    """Cite the first shown sentence with an answer that belongs to the question, preferably with `containing` in it."""
    spans = [(passage, span) for passage in passages for span in _answering(answer, passage, question)]
    both = [
        (passage, (start, end)) for passage, (start, end) in spans if find_sentence(containing, passage.text[start:end])
    ]
    return [citation_at(passage, span) for passage, span in (both or spans)[:1]]


def cite_sentence(passage: Passage, at: int) -> Citation:
    """Cite the sentence of a passage that contains the character `at`."""
    spans = sentence_spans(passage.text) or [(0, len(passage.text))]
    return citation_at(passage, next((span for span in spans if at < span[1]), spans[-1]))


def cite_closest(text: str, passages: Sequence[Passage]) -> list[Citation]:
    """Cite the sentence of each passage with most words of a text, unless that of another has over twice as many."""
    words = content_words(text)
    ranked: list[tuple[int, Citation]] = []
    for passage in passages:
        shared = {span: len(words & content_words(passage.text[slice(*span)])) for span in sentence_spans(passage.text)}
        if shared:
            best = max(shared, key=shared.__getitem__)
            ranked.append((shared[best], citation_at(passage, best)))
    most = max((number for number, _ in ranked), default=0)
    return [citation for number, citation in ranked if 2 * number >= most]


def cite_reading(question: str, reading: Reading, passages: Sequence[Passage]) -> list[Citation]:
    """Cite the sentence of the answer that the evidence checker read, after one of another passage that names its
    passage; for yes or no, the closest sentences of the two most relevant passages.
    """
    order = reading.by_relevance
    if not (reading.spans and reading.answer == reading.spans[0].text):
        return cite_closest(question, [passages[at] for at in order[:2]])
    span = reading.spans[0]
    read = passages[span.passage]
    others = [passages[at] for at in order if at != span.passage and reading.relevance[at] >= RELEVANT]
    named = [(passage, list(find_words(read.title.split(), passage.text))) for passage in others]
    leading = [cite_sentence(passage, spans[0][0]) for passage, spans in named if spans]
    return [*leading[:1], cite_sentence(read, span.start)]


def verified_citations(
    model: ModelCaller, answer: str, quotes: Sequence[Quote], passages: Sequence[Passage], *, question: str = ""
) -> list[Citation]:
    """Return verified citations, one of which contains the answer if any shown passage does; none without an answer."""
    citations = verify_quotes(model, answer, quotes, passages, question=question)
    return ensure_verbatim_support(answer, citations, passages, question=question)


def ensure_verbatim_support(
    answer: str, citations: Sequence[Citation], passages: Sequence[Passage], *, question: str = ""
) -> list[Citation]:
    """Adjust citations so that at least one contains the answer verbatim, if any shown passage does.

    A quote without the answer is replaced by the nearest sentence of its passage that contains it and belongs to the
    question, unless the passage's title does: then the whole passage is about the answer. If no quote contains it after
    that, the first shown sentence that does is cited as well. Quotes that share no word with the question, or with
    another quote, are dropped if a shown sentence does.
    """
    by_id = {passage.id: passage for passage in passages}
    nearest = [_nearest_containing(answer, citation, by_id, question) for citation in citations]
    unique = [citation for at, citation in enumerate(nearest) if citation not in nearest[:at]]
    is_verbatim = any(find_sentence(answer, citation["quote"]) for citation in unique)
    cited = unique if is_verbatim else [*unique, *find_support(answer, passages, question=question)]
    return _linked(answer, cited, question) or find_support(answer, passages, question=question) or cited


def _linked(answer: str, citations: Sequence[Citation], question: str) -> list[Citation]:
    """Return the citations that share a word with the question or with another citation, also in their titles; words of
    the answer do not count.
    """
    if not question:
        return list(citations)
    texts = [question, *(f"{citation['title']} {citation['quote']}" for citation in citations)]
    words = [content_words(text) - content_words(answer) for text in texts]
    others = [frozenset().union(*words[:at], *words[at + 1 :]) for at in range(len(words))]
    return [citation for at, citation in enumerate(citations, start=1) if words[at] & others[at]]


def _nearest_containing(answer: str, citation: Citation, passages: Mapping[str, Passage], question: str) -> Citation:
    passage = passages.get(citation["passage"])
    if not passage or any(find_sentence(answer, text) for text in (citation["quote"], passage.title)):
        return citation
    start, end = citation["start"] - passage.start, citation["end"] - passage.start
    spans = _answering(answer, passage, question)
    span = min(spans, key=lambda span: max(span[0] - end, start - span[1], 0), default=None)
    return citation_at(passage, span) if span else citation


def citation_at(passage: Passage, span: tuple[int, int]) -> Citation:
    """Return a citation of these characters of a passage."""
    start, end = span
    citation = Citation(
        passage=passage.id,
        document=passage.document_id,
        title=passage.title,
        quote=passage.text[start:end],
        start=passage.start + start,
        end=passage.start + end,
    )
    if passage.location:
        citation["location"] = quote_location(passage.places, start, end) if passage.places else passage.location
    if isinstance(passage, RetrievedPassage) and passage.way:
        citation["why"] = passage.way
    return citation
