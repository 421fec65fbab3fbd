"""Additions of ours to RAS: findings of sub-queries, and notes that are inherited from another run."""

from collections.abc import Mapping

from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles.planning import NextWithFinding
from sleuth.graphs.core.answer import Note
from sleuth.graphs.evidence.outcomes import make_note, stated_answer
from sleuth.graphs.evidence.retrieval import Round
from sleuth.graphs.methods.ras.triple_graph import Entities, Fact, RenderedFacts, cite_facts, entity_key

Rounds = Mapping[str, Round]
Notes = Mapping[str, Note]


def finding_key(round: str) -> str:
    """Return the key of the note of a sub-query."""
    return f"sub-query {round}"


def inherited_notes(notes: Notes, rounds: Rounds, facts: Mapping[str, Fact]) -> dict[str, Note]:
    """Return the notes of another run."""
    own = {finding_key(at) for at in rounds} | {f"fact {number}" for number in facts}
    return {key: note for key, note in notes.items() if key not in own}


def is_repeated(query: str, rounds: Rounds, notes: Notes) -> bool:
    """Return whether a sub-query was searched for before, or a note answers it."""
    answered = [note["question"] for note in notes.values() if note["finding"]]
    return entity_key(query) in map(entity_key, (*answered, *(round["query"] for round in rounds.values())))


def findings(
    model: ModelCaller,
    reply: NextWithFinding,
    shown: RenderedFacts,
    *,
    question: str,
    rounds: Rounds,
    entities: Entities,
    facts: Mapping[str, Fact],
) -> dict[str, Note | None]:
    """Return the note of the latest sub-query if the planner found its answer, else notes of the facts that it names.

    A fact that leads to an answer is worth keeping, in words of its own.
    """
    at, finding = str(len(rounds)), stated_answer(reply.finding)
    query = rounds[at]["query"]
    if finding and entity_key(query) != entity_key(question):
        return {finding_key(at): make_note(query, finding, cite_facts(model, shown, reply.facts, finding))}
    notes: dict[str, Note | None] = {}
    for number in reply.facts:
        if fact := facts.get(str(number)):
            subject, object = (entities.get(fact[end], fact[end]) for end in ("subject", "object"))
            citations = cite_facts(model, shown, [number], object)
            notes[f"fact {number}"] = make_note(f"{subject} – {fact['predicate']}?", object, citations)
    return notes
