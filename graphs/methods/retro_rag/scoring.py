"""Model calls of RetroRAG's nodes: scores, answers, inferences; each with its default for a reply that cannot be
parsed.
"""

import asyncio
from collections.abc import Mapping, Sequence

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls import ModelCaller, first_token_probability
from sleuth.agents.role import I, Role
from sleuth.agents.roles import judging, reasoning
from sleuth.graphs.core import Note, Threshold, ask_or, choose_threshold
from sleuth.graphs.evidence import as_sources, as_steps, find_support, make_note, verify_quotes
from sleuth.graphs.methods.retro_rag.evidence_state import Notes, inference_key, with_sources
from sleuth.tools.errors import BadReply
from sleuth.tools.text import comparison_key
from sleuth.tools.types import Passage

UNDECIDED = 0.5
"""The score of evidence that cannot be scored; a test is passed only above it."""

PUBLISHED = Threshold(value=0.7, by="the paper's; another one was not fitted for the model")
"""The consistency above which an answer is final, for models without a fitted threshold."""

_NO_ANSWER = "This round has no answer."


def consistency_limit(given: float | None, fitted: Mapping[str, Threshold]) -> Threshold:
    """Return the consistency above which an answer is final in this run."""
    return choose_threshold(given, fitted.get(judging.CONSISTENCY.prompt), PUBLISHED)


async def yes_probability(model: ModelCaller, role: Role[I, str], given: I) -> float:
    """Return P(yes) / (P(yes) + P(no)) at the first token (equation 1); undecided, with a warning, without either."""
    try:
        _, reply = await model.ask_with_reply(role, given)
    except BadReply as error:
        model.warn(f"{error} It counts as undecided.")
        return UNDECIDED
    score, warning = first_token_probability(reply)
    if warning:
        model.warn(f"{role.prompt}: {warning}")
    return score


async def score_relevance(model: ModelCaller, query: str, pieces: Mapping[str, Source]) -> dict[str, float]:
    """Score the relevance of each piece of evidence to a query in parallel (equations 2 and 4)."""
    given = [judging.EvidenceInput(query=query, sources=(piece,)) for piece in pieces.values()]
    scores = await asyncio.gather(*(yes_probability(model, judging.EVIDENCE, each) for each in given))
    return dict(zip(pieces, scores, strict=True))


async def attempt_answer(
    model: ModelCaller, given: reasoning.ReasonInput, *, from_memory: bool, twice: bool
) -> tuple[reasoning.Reasoned, str]:
    """Return an answer with its reasons and, if `twice`, a second one; `from_memory` shows no evidence."""
    first = (_recalled if from_memory else _reasoned)(model, given)
    if not twice:
        return await first, ""
    return await asyncio.gather(first, _second(model, given, from_memory=from_memory))


async def _reasoned(model: ModelCaller, given: reasoning.ReasonInput) -> reasoning.Reasoned:
    return await ask_or(model, reasoning.REASON, given, reasoning.Reasoned(answer=""), _NO_ANSWER)


async def _recalled(model: ModelCaller, given: reasoning.ReasonInput) -> reasoning.Reasoned:
    question = reasoning.QuestionInput(question=given.question)
    recalled = await ask_or(model, reasoning.RECALL, question, reasoning.Recalled(answer=""), _NO_ANSWER)
    return reasoning.Reasoned(reason=recalled.reason, answer=recalled.answer)


async def _second(model: ModelCaller, given: reasoning.ReasonInput, *, from_memory: bool) -> str:
    nothing, loss = reasoning.Direct(answer=""), "This round has no second answer."
    if not from_memory:
        return (await ask_or(model, reasoning.MONITOR, given, nothing, loss)).answer
    question = reasoning.QuestionInput(question=given.question)
    return (await ask_or(model, reasoning.GUESS, question, nothing, loss)).answer


async def name_entities(model: ModelCaller, question: str) -> list[str]:
    """Return the key entities of the question, or the question itself if the reply cannot be parsed."""
    given = reasoning.QuestionInput(question=question)
    itself = reasoning.Entities(entities=[question[:80]])
    loss = "The question is taken as its own entity."
    return list(dict.fromkeys((await ask_or(model, reasoning.ENTITIES, given, itself, loss)).entities))


async def infer(
    model: ModelCaller, given: reasoning.InferInput, shown: Sequence[Passage], *, round: int, known: Notes
) -> dict[str, Note]:
    """Return new inferences, each with the passages that it names; those without a shown passage are dropped."""
    none = reasoning.Inferences(inferences=[])
    said = await ask_or(model, reasoning.INFER, given, none, f"Round {round} has no inferences.")
    heard = {comparison_key(found["finding"]) for found in known.values()}
    notes = {}
    for at, inference in enumerate(said.inferences, start=1):
        resting = [shown[cited.source - 1] for cited in inference.citations if cited.source <= len(shown)]
        if not resting:
            model.warn(f"an inference of round {round} names no passage that was shown: {inference.claim!r}")
        elif comparison_key(inference.claim) not in heard:
            heard.add(comparison_key(inference.claim))
            citations = verify_quotes(model, inference.claim, inference.citations, shown)
            found = make_note(inference.question, inference.claim, citations)
            notes[inference_key(round, at)] = with_sources(found, resting)
    return notes


async def find_contradicted(
    model: ModelCaller, new: Notes, *, query: str, known: Notes, shown: Sequence[Passage]
) -> set[str]:
    """Return the inferences that fail a test: relevance to the query, and attribution to the passages (equation 3)."""
    steps, read = as_steps(known.values()), as_sources(shown)
    relevance = [judging.RelevanceInput(query=query, claim=each["finding"], known=steps) for each in new.values()]
    attribution = [judging.AttributionInput(claim=each["finding"], sources=read) for each in new.values()]
    relevant, attributed = await asyncio.gather(
        asyncio.gather(*(yes_probability(model, judging.RELEVANCE, each) for each in relevance)),
        asyncio.gather(*(yes_probability(model, judging.ATTRIBUTION, each) for each in attribution)),
    )
    return {key for key, *scores in zip(new, relevant, attributed, strict=True) if min(scores) <= UNDECIDED}


async def reverify(model: ModelCaller, orphans: Notes, shown: Sequence[Passage]) -> dict[str, Note]:
    """Return the inferences that other passages support, with these as their passages; each passage is tested alone."""
    pairs = [(key, passage) for key in orphans for passage in shown]
    given = [
        judging.AttributionInput(claim=orphans[key]["finding"], sources=as_sources([passage])) for key, passage in pairs
    ]
    scores = await asyncio.gather(*(yes_probability(model, judging.ATTRIBUTION, each) for each in given))
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
