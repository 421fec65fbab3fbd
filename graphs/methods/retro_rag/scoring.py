"""What RetroRAG's nodes ask: scores, answers, inferences; each with what is made of it where no reply can be used."""

import asyncio
from collections.abc import Mapping, Sequence

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls import Desk, first_token_probability
from sleuth.agents.role import I, Role
from sleuth.agents.roles.judging import evaluator
from sleuth.agents.roles.reasoning import evidence_discovery as detective
from sleuth.agents.roles.reasoning import reasoner
from sleuth.graphs.core import Note, Threshold, ask_or, chosen
from sleuth.graphs.evidence import check, known_steps, note, sources, support
from sleuth.graphs.methods.retro_rag.evidence_state import Notes, inference_key, resting_on
from sleuth.tools.errors import BadReply
from sleuth.tools.text import comparison_key
from sleuth.tools.types import Passage

UNDECIDED = 0.5
"""The score of what cannot be scored; a test is passed only above it."""

PUBLISHED = Threshold(value=0.7, by="the paper's; another one was not fitted for the model")
"""The consistency above which an answer is final, for models that none was fitted for."""

_NO_ANSWER = "This round has no answer."


def limit_of(given: float | None, fitted: Mapping[str, Threshold]) -> Threshold:
    """The consistency above which an answer is final in this run."""
    return chosen(given, fitted.get(evaluator.CONSISTENCY.prompt), PUBLISHED)


async def probability(asking: Desk, role: Role[I, str], given: I) -> float:
    """P(yes) / (P(yes) + P(no)) at the first token (equation 1); undecided, with a warning, where there is neither."""
    try:
        _, reply = await asking.consult(role, given)
    except BadReply as error:
        asking.warn(f"{error} It counts as undecided.")
        return UNDECIDED
    score, warning = first_token_probability(reply)
    if warning:
        asking.warn(f"{role.prompt}: {warning}")
    return score


async def helpfulness(asking: Desk, query: str, pieces: Mapping[str, Source]) -> dict[str, float]:
    """How much each piece of evidence helps with a query (equations 2 and 4), asked side by side."""
    given = [evaluator.EvidenceInput(query=query, sources=(piece,)) for piece in pieces.values()]
    scores = await asyncio.gather(*(probability(asking, evaluator.EVIDENCE, each) for each in given))
    return dict(zip(pieces, scores, strict=True))


async def tried(
    asking: Desk, given: reasoner.ReasonInput, *, from_memory: bool, twice: bool
) -> tuple[reasoner.Reasoned, str]:
    """An answer with its reasons and, where it is wanted, the second one; from memory there is no evidence."""
    first = (_recalled if from_memory else _reasoned)(asking, given)
    if not twice:
        return await first, ""
    return await asyncio.gather(first, _second(asking, given, from_memory=from_memory))


async def _reasoned(asking: Desk, given: reasoner.ReasonInput) -> reasoner.Reasoned:
    return await ask_or(asking, reasoner.REASON, given, reasoner.Reasoned(answer=""), _NO_ANSWER)


async def _recalled(asking: Desk, given: reasoner.ReasonInput) -> reasoner.Reasoned:
    question = reasoner.RecallInput(question=given.question)
    recalled = await ask_or(asking, reasoner.RECALL, question, reasoner.Recalled(answer=""), _NO_ANSWER)
    return reasoner.Reasoned(reason=recalled.reason, answer=recalled.answer)


async def _second(asking: Desk, given: reasoner.ReasonInput, *, from_memory: bool) -> str:
    nothing, loss = reasoner.Direct(answer=""), "This round's answer has no second one beside it."
    if not from_memory:
        return (await ask_or(asking, reasoner.MONITOR, given, nothing, loss)).answer
    question = reasoner.RecallInput(question=given.question)
    return (await ask_or(asking, reasoner.GUESS, question, nothing, loss)).answer


async def key_entities(asking: Desk, question: str) -> list[str]:
    """What the question turns on; itself, where nobody can tell."""
    given = detective.EntitiesInput(question=question)
    itself = detective.Entities(entities=[question[:80]])
    loss = "The question is taken as its own entity."
    return list(dict.fromkeys((await ask_or(asking, detective.ENTITIES, given, itself, loss)).entities))


async def inferred(
    asking: Desk, given: detective.InferInput, shown: Sequence[Passage], *, round: int, known: Notes
) -> dict[str, Note]:
    """New inferences, each with the passages that it names; without any of those shown it is none."""
    none = detective.Inferences(inferences=[])
    said = await ask_or(asking, detective.INFER, given, none, f"Round {round} has no inferences.")
    heard = {comparison_key(found["finding"]) for found in known.values()}
    notes = {}
    for at, inference in enumerate(said.inferences, start=1):
        resting = [shown[cited.source - 1] for cited in inference.citations if cited.source <= len(shown)]
        if not resting:
            asking.warn(f"an inference of round {round} names no passage that was shown: {inference.claim!r}")
        elif comparison_key(inference.claim) not in heard:
            heard.add(comparison_key(inference.claim))
            citations = check(asking, inference.claim, inference.citations, shown)
            found = note(inference.question, inference.claim, citations)
            notes[inference_key(round, at)] = resting_on(found, resting)
    return notes


async def refuted(asking: Desk, new: Notes, *, query: str, known: Notes, shown: Sequence[Passage]) -> set[str]:
    """The inferences that fail a test: relevant to the query, and said by the passages (equation 3)."""
    steps, read = known_steps(known.values()), sources(shown)
    relevance = [evaluator.RelevanceInput(query=query, claim=each["finding"], known=steps) for each in new.values()]
    attribution = [evaluator.AttributionInput(claim=each["finding"], sources=read) for each in new.values()]
    relevant, attributed = await asyncio.gather(
        asyncio.gather(*(probability(asking, evaluator.RELEVANCE, each) for each in relevance)),
        asyncio.gather(*(probability(asking, evaluator.ATTRIBUTION, each) for each in attribution)),
    )
    return {key for key, *scores in zip(new, relevant, attributed, strict=True) if min(scores) <= UNDECIDED}


async def supported_anew(asking: Desk, orphans: Notes, shown: Sequence[Passage]) -> dict[str, Note]:
    """Those orphans that other passages say as well, resting on these from now on: each passage is asked by itself."""
    pairs = [(key, passage) for key in orphans for passage in shown]
    given = [
        evaluator.AttributionInput(claim=orphans[key]["finding"], sources=sources([passage])) for key, passage in pairs
    ]
    scores = await asyncio.gather(*(probability(asking, evaluator.ATTRIBUTION, each) for each in given))
    kept = {}
    for key, orphan in orphans.items():
        saying = [
            passage for (of, passage), score in zip(pairs, scores, strict=True) if of == key and score > UNDECIDED
        ]
        if saying:
            found = note(
                orphan["question"],
                orphan["finding"],
                support(orphan["finding"], saying),
                "its first passages have left",
            )
            kept[key] = resting_on(found, saying)
    return kept
