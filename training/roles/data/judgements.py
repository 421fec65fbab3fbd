"""Yes-or-no examples about answers and statements: from quotes that were cited, and from SciFact's claims."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from sleuth.agents.formatting import Source
from sleuth.agents.roles.judging import ATTRIBUTION, RELEVANCE, SUPPORT, AttributionInput, RelevanceInput, SupportInput
from sleuth.agents.roles.reading import Reading
from sleuth.agents.roles.reasoning import Inferences
from sleuth.tools.text.tokenization import sentences
from training.questions import Abstract, ScientificClaim, ScientificEvidence, lines
from training.roles.data.teacher import Example, Learned
from training.roles.data.wording import paraphrase_naturally
from training.simulation.wording import find_names, mentions

_AROUND = 2
"""Sentences of an abstract shown before and after the evidence."""
_BEGINNING = 5
"""Sentences shown of an abstract without evidence."""


def attributions(claims: Path, corpus: Path) -> Iterator[Example]:
    """Yield claims of the training split with an abstract: Yes if it supports them, otherwise No.

    Raises:
        UsageError: a file or a line of it cannot be used; names file and line.
    """
    abstracts = {abstract.id: abstract for abstract in lines(corpus, Abstract)}
    for claim in lines(claims, ScientificClaim):
        if claim.split != "train":
            continue
        told = {each.doc_id: each for each in claim.evidence}
        for id in [*told, *(id for id in claim.cited_doc_ids if id not in told)]:
            evidence = told.get(id)
            source = Source(title=abstracts[id].title, text=_shown(abstracts[id].abstract, evidence))
            given = AttributionInput(claim=claim.claim, sources=(source,))
            reply = "Yes" if evidence is not None and evidence.label == "SUPPORT" else "No"
            source_file = f"{claims.parent.name}/{claims.name.partition('.')[0]}"
            yield Example.of(ATTRIBUTION, given, reply, set=source_file, hops=0, question=claim.id)


def _shown(sentences: list[str], evidence: ScientificEvidence | None) -> str:
    if evidence is None:
        return " ".join(each.strip() for each in sentences[:_BEGINNING])
    first, last = max(0, min(evidence.sentences) - _AROUND), max(evidence.sentences) + _AROUND
    return " ".join(each.strip() for each in sentences[first : last + 1])


def supports(learned: Learned, dice: Random) -> Iterator[Example]:
    """Yield Yes for an answer with all its citations; No with a quote missing, or for another answer."""
    read, sources = learned.example, learned.given["sources"]
    reading = Reading.model_validate_json(read.reply)
    if not reading.answerable or not reading.citations:
        return
    question = paraphrase_naturally(learned.given["question"])
    quotes = [Source(title=sources[each.source - 1]["title"], text=each.quote) for each in reading.citations]
    yield _support(read, question, reading.answer, quotes, holds=True)
    if len(quotes) > 1 and dice.random() < 1 / 2:
        left_out = dice.randrange(len(quotes))
        fewer = [quote for at, quote in enumerate(quotes) if at != left_out]
        yield _support(read, question, reading.answer, fewer, holds=False)
    elif others := _others(reading.answer, f"{question} {reading.answer}", sources):
        yield _support(read, question, dice.choice(others), quotes, holds=False)


def _others(answer: str, taken: str, sources: list[dict[str, str]]) -> list[str]:
    """Return other names in the sources that are of the answer's kind."""
    number = any(sign.isdigit() for sign in answer)
    named = find_names(" . ".join(source["text"] for source in sources))
    return [name for name in named if name[0].isdigit() == number and not mentions(taken, name)]


def irrelevances(learned: Learned) -> Iterator[Example]:
    """Yield No for a sentence of a retrieved source without use: hard negatives."""
    read, given = learned.example, learned.given
    used = {quote.source for each in Inferences.model_validate_json(read.reply).inferences for quote in each.citations}
    idle = [source for at, source in enumerate(given["sources"], start=1) if at not in used]
    for source in idle[:1]:
        claim = next(iter(sentences(source["text"])), "")[:240]
        asked = RelevanceInput(query=paraphrase_naturally(given["question"]), claim=claim, known=())
        yield Example.of(RELEVANCE, asked, "No", set=read.set, hops=read.hops, question=read.question)


def _support(read: Example, question: str, answer: str, quotes: list[Source], *, holds: bool) -> Example:
    given = SupportInput(question=question, answer=answer, sources=tuple(quotes))
    reply = "Yes" if holds else "No"
    return Example.of(SUPPORT, given, reply, set=read.set, hops=read.hops, question=read.question)
