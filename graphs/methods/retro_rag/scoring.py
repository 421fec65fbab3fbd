"""Model calls of RetroRAG's nodes: scores, answers, inferences; each with its default for a reply that cannot be
parsed.
"""

import asyncio
from collections.abc import Mapping, Sequence

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls import Desk, first_token_probability
from sleuth.agents.role import I, Role
from sleuth.agents.roles.judging import evaluator
from sleuth.agents.roles.reasoning import evidence_discovery as detective
from sleuth.agents.roles.reasoning import reasoner
from sleuth.graphs.core import Note, Threshold, ask_or, choose_threshold
from sleuth.graphs.evidence import as_sources, as_steps, find_support, make_note, verify_quotes
from sleuth.graphs.methods.retro_rag.evidence_state import Notes, inference_key, with_sources
from sleuth.tools.errors import BadReply
from sleuth.tools.text import words
from sleuth.tools.types import Passage

UNDECIDED = 0.5
"""The score of evidence that cannot be scored; a test is passed only above it."""

PUBLISHED = Threshold(value=0.7, by="the paper's; another one was not fitted for the model")
"""The consistency above which an answer is final, for models without a fitted threshold."""

_NO_ANSWER = "This round has no answer."


def consistency_limit(given: float | None, fitted: Mapping[str, Threshold]) -> Threshold:
    """Return the consistency above which an answer is final in this run."""
    return choose_threshold(given, fitted.get(evaluator.CONSISTENCY.prompt), PUBLISHED)


async def yes_probability(model: Desk, role: Role[I, str], given: I) -> float:
    """Return P(yes) / (P(yes) + P(no)) at the first token (equation 1); undecided, with a warning, without either."""
    try:
        _, reply = await model.consult(role, given)
    except BadReply as error:
        model.warn(f"{error} It counts as undecided.")
        return UNDECIDED
    score, warning = first_token_probability(reply)
    if warning:
        model.warn(f"{role.prompt}: {warning}")
    return score


async def score_relevance(model: Desk, query: str, pieces: Mapping[str, Source]) -> dict[str, float]:
    """Score the relevance of each piece of evidence to a query in parallel (equations 2 and 4)."""
    given = [evaluator.EvidenceInput(query=query, sources=(piece,)) for piece in pieces.values()]
    scores = await asyncio.gather(*(yes_probability(model, evaluator.EVIDENCE, each) for each in given))
    return dict(zip(pieces, scores, strict=True))


async def attempt_answer(
    model: Desk, given: reasoner.ReasonInput, *, from_memory: bool, twice: bool
) -> tuple[reasoner.Reasoned, str]:
    """Return an answer with its reasons and, if `twice`, a second one; `from_memory` shows no evidence."""
    first = (_recalled if from_memory else _reasoned)(model, given)
    if not twice:
        return await first, ""
    return await asyncio.gather(first, _second(model, given, from_memory=from_memory))


async def _reasoned(model: Desk, given: reasoner.ReasonInput) -> reasoner.Reasoned:
    return await ask_or(model, reasoner.REASON, given, reasoner.Reasoned(answer=""), _NO_ANSWER)


async def _recalled(model: Desk, given: reasoner.ReasonInput) -> reasoner.Reasoned:
    question = reasoner.RecallInput(question=given.question)
    recalled = await ask_or(model, reasoner.RECALL, question, reasoner.Recalled(answer=""), _NO_ANSWER)
    return reasoner.Reasoned(reason=recalled.reason, answer=recalled.answer)


async def _second(model: Desk, given: reasoner.ReasonInput, *, from_memory: bool) -> str:
    nothing, loss = reasoner.Direct(answer=""), "This round has no second answer."
    if not from_memory:
        return (await ask_or(model, reasoner.MONITOR, given, nothing, loss)).answer
    question = reasoner.RecallInput(question=given.question)
    return (await ask_or(model, reasoner.GUESS, question, nothing, loss)).answer


async def name_entities(model: Desk, question: str) -> list[str]:
    """Return the key entities of the question, or the question itself if the reply cannot be parsed."""
    given = detective.EntitiesInput(question=question)
    itself = detective.Entities(entities=[question[:80]])
    loss = "The question is taken as its own entity."
    return list(dict.fromkeys((await ask_or(model, detective.ENTITIES, given, itself, loss)).entities))


async def infer(
    model: Desk, given: detective.InferInput, shown: Sequence[Passage], *, round: int, known: Notes
) -> dict[str, Note]:
    """Return new inferences, each with the passages that it names; those without a shown passage are dropped."""
    none = detective.Inferences(inferences=[])
    said = await ask_or(model, detective.INFER, given, none, f"Round {round} has no inferences.")
    heard = {words(found["finding"]) for found in known.values()}
    notes = {}
    for at, inference in enumerate(said.inferences, start=1):
        resting = [shown[cited.source - 1] for cited in inference.citations if cited.source <= len(shown)]
        if not resting:
            model.warn(f"an inference of round {round} names no passage that was shown: {inference.claim!r}")
        elif words(inference.claim) not in heard:
            heard.add(words(inference.claim))
            citations = verify_quotes(model, inference.claim, inference.citations, shown)
            found = make_note(inference.question, inference.claim, citations)
            notes[inference_key(round, at)] = with_sources(found, resting)
    return notes


async def find_contradicted(model: Desk, new: Notes, *, query: str, known: Notes, shown: Sequence[Passage]) -> set[str]:
    """Return the inferences that fail a test: relevance to the query, and attribution to the passages (equation 3)."""
    steps, read = as_steps(known.values()), as_sources(shown)
    relevance = [evaluator.RelevanceInput(query=query, claim=each["finding"], known=steps) for each in new.values()]
    attribution = [evaluator.AttributionInput(claim=each["finding"], sources=read) for each in new.values()]
    relevant, attributed = await asyncio.gather(
        asyncio.gather(*(yes_probability(model, evaluator.RELEVANCE, each) for each in relevance)),
        asyncio.gather(*(yes_probability(model, evaluator.ATTRIBUTION, each) for each in attribution)),
    )
    return {key for key, *scores in zip(new, relevant, attributed, strict=True) if min(scores) <= UNDECIDED}


async def reverify(model: Desk, orphans: Notes, shown: Sequence[Passage]) -> dict[str, Note]:
    """Return the inferences that other passages support, with these as their passages; each passage is tested alone."""
    pairs = [(key, passage) for key in orphans for passage in shown]
    given = [
        evaluator.AttributionInput(claim=orphans[key]["finding"], sources=as_sources([passage]))
        for key, passage in pairs
    ]
    scores = await asyncio.gather(*(yes_probability(model, evaluator.ATTRIBUTION, each) for each in given))
    kept = {}
    for key, orphan in orphans.items():
        saying = [
            passage for (of, passage), score in zip(pairs, scores, strict=True) if of == key and score > UNDECIDED
        ]
        if saying:
            found = make_note(
                orphan["question"],
                orphan["finding"],
                find_support(orphan["finding"], saying),
                "its first passages have left",
            )
            kept[key] = with_sources(found, saying)
    return kept
