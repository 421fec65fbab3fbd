"""The roles of the hybrid system: they recall, name what to look up, and answer from all references at once.

The gold of a question knows no arithmetic, so nothing is worked out. A premise is false where each hop has an answer
and the question has none; that is seen once the references tell all hops.
"""

from sleuth.agents.roles.hybrid import (
    MAX_ENTITIES,
    Argument,
    Call,
    Calls,
    Doubted,
    Entities,
    Entity,
    Expression,
    Reasoned,
    Recollection,
    Resolved,
    Summary,
)
from sleuth.studio.simulation.answering import FoundAnswer, find_answer
from sleuth.studio.simulation.reply import SimulatedReply, structured
from sleuth.studio.simulation.request_view import RequestView
from sleuth.studio.simulation.wording import names

_UNKNOWN = "I don't know"


def recall(view: RequestView) -> SimulatedReply:
    """RECALL_UNAIDED."""
    known = view.knows_unaided()
    return structured(Recollection(known=known, answer=view.gold.answer if known else ""))


def _named(view: RequestView) -> list[str]:
    """What a question names; nothing where the role overlooks it."""
    return [] if view.errs("missed") else [*dict.fromkeys(names(view.question))][:MAX_ENTITIES]


def entities(view: RequestView) -> SimulatedReply:
    """NAME_ENTITIES."""
    return structured(Entities(entities=[Entity(name=name[:120]) for name in _named(view)]))


def calls(view: RequestView) -> SimulatedReply:
    """CHOOSE_CALLS: the entities by their names."""
    wanted = [[Argument(name="entity", value=name[:120])] for name in _named(view)]
    return structured(Calls(calls=[Call(function="open_get_entity", arguments=each) for each in wanted]))


def express(_: RequestView) -> SimulatedReply:
    """EXPRESS."""
    return structured(Expression())


def _found(view: RequestView) -> FoundAnswer:
    found = find_answer(view, view.gold.question)
    return found if found.answer else FoundAnswer(answer=_UNKNOWN)


def plain(view: RequestView) -> SimulatedReply:
    """RESOLVE_PLAIN: a guess where the references do not tell."""
    found = find_answer(view, view.gold.question)
    guess = found.answer or view.decoy(view.gold.answer)
    return structured(Resolved(answer=guess, citations=[*found.quotes]))


def careful(view: RequestView) -> SimulatedReply:
    """RESOLVE_CAREFUL."""
    found = _found(view)
    return structured(Resolved(answer=found.answer, citations=[*found.quotes]))


def reason(view: RequestView) -> SimulatedReply:
    """RESOLVE_BY_REASONING."""
    found = _found(view)
    return structured(Reasoned(answer=found.answer, citations=[*found.quotes]))


def doubt(view: RequestView) -> SimulatedReply:
    """RESOLVE."""
    hops = range(len(view.gold.hops))
    if view.gold.contradicted() and all(view.holds(hop) for hop in hops):
        return structured(Doubted(answer="Invalid question", citations=[], false_premise=True))
    found = _found(view)
    return structured(Doubted(answer=found.answer, citations=[*found.quotes]))


def summarise(view: RequestView) -> SimulatedReply:
    """SUMMARISE."""
    return structured(Summary(answer=_found(view).answer))
