"""Additions of ours to RAS: findings of sub-queries, notes inherited from another run, and grounded triples."""

import re
from typing import TYPE_CHECKING

from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles.planning import NextWithFinding
from sleuth.graphs.core.answer import Note
from sleuth.graphs.evidence.outcomes import make_note, stated_answer
from sleuth.graphs.methods.ras.triple_graph import PassageTriples, RenderedFacts, cite_facts, entity_key, fold
from sleuth.tools.storage import Triple
from sleuth.tools.types import Passage

if TYPE_CHECKING:
    from sleuth.graphs.methods.ras.graph import State


def finding_key(round: str) -> str:
    """Return the key of the note of a sub-query."""
    return f"sub-query {round}"


def inherited_notes(state: "State") -> dict[str, Note]:
    """Return the notes of another run."""
    own = {finding_key(at) for at in state.rounds} | {f"fact {number}" for number in state.facts}
    return {key: note for key, note in state.notes.items() if key not in own}


def is_repeated(query: str, state: "State") -> bool:
    """Return whether a sub-query was searched for before, or a note answers it."""
    answered = [note["question"] for note in state.notes.values() if note["finding"]]
    return entity_key(query) in map(entity_key, (*answered, *(round["query"] for round in state.rounds.values())))


def findings(reply: NextWithFinding, state: "State", shown: RenderedFacts, model: ModelCaller) -> dict[str, Note]:
    """Return the note of the latest sub-query if the planner found its answer, else notes of the facts that it names.

    A fact that leads to an answer is worth keeping, in words of its own.
    """
    at, finding = str(len(state.rounds)), stated_answer(reply.finding)
    query = state.rounds[at]["query"]
    if finding and entity_key(query) != entity_key(state.question):
        return {finding_key(at): make_note(query, finding, cite_facts(model, shown, reply.facts, finding))}
    notes = {}
    for number in reply.facts:
        if fact := state.facts.get(str(number)):
            subject, object = (state.entities.get(fact[end], fact[end]) for end in ("subject", "object"))
            citations = cite_facts(model, shown, [number], object)
            notes[f"fact {number}"] = make_note(f"{subject} – {fact['predicate']}?", object, citations)
    return notes


def drop_ungrounded(found: PassageTriples) -> tuple[PassageTriples, list[str]]:
    """Drop triples whose subject or object has no word in the passage: inventions, which warnings count."""
    kept = [(passage, [triple for triple in triples if _is_grounded(triple, passage)]) for passage, triples in found]
    lost = [(passage, len(all) - len(some)) for (passage, some), (_, all) in zip(kept, found, strict=True)]
    return kept, [
        f"dropped triples whose names {passage.id} does not have: {count}" for passage, count in lost if count
    ]


def _is_grounded(triple: Triple, passage: Passage) -> bool:
    """Return whether a passage has a word of both names; short words such as "of" count only if there are no others."""
    text = fold(f"{passage.title} {passage.text}")
    for name in (fold(triple[0]), fold(triple[2])):
        every = re.findall(r"\w+", name) or [name]
        significant = [word for word in every if len(word) > 3 or word.isdigit()]
        if not any(word in text for word in significant or every):
            return False
    return True
