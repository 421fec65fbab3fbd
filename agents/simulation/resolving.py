"""The roles of the hybrid system: they recall, name what to look up, and answer from all references at once.

The gold of a question knows no arithmetic, so nothing is worked out. A premise is false where each hop has an answer
and the question has none; that is seen once the references tell all hops.
"""

from sleuth.agents.calculator import Expression
from sleuth.agents.querier import MAX_ENTITIES, Argument, Call, Calls, Entities, Entity
from sleuth.agents.recaller import Recollection
from sleuth.agents.resolver import Doubted, Reasoned, Resolved
from sleuth.agents.simulation.answering import Told, told
from sleuth.agents.simulation.said import Said, said
from sleuth.agents.simulation.scene import Scene
from sleuth.agents.simulation.wording import names
from sleuth.agents.summariser import Summary

_UNKNOWN = "I don't know"


def recall(scene: Scene) -> Said:
    """RECALL_UNAIDED."""
    known = scene.knows_unaided()
    return said(Recollection(known=known, answer=scene.gold.answer if known else ""))


def _named(scene: Scene) -> list[str]:
    """What a question names; nothing where the role overlooks it."""
    return [] if scene.errs("missed") else [*dict.fromkeys(names(scene.question))][:MAX_ENTITIES]


def entities(scene: Scene) -> Said:
    """NAME_ENTITIES."""
    return said(Entities(entities=[Entity(name=name[:120]) for name in _named(scene)]))


def calls(scene: Scene) -> Said:
    """CHOOSE_CALLS: the entities by their names."""
    wanted = [[Argument(name="entity", value=name[:120])] for name in _named(scene)]
    return said(Calls(calls=[Call(function="open_get_entity", arguments=each) for each in wanted]))


def express(_: Scene) -> Said:
    """EXPRESS."""
    return said(Expression())


def _found(scene: Scene) -> Told:
    found = told(scene, scene.gold.question)
    return found if found.answer else Told(answer=_UNKNOWN)


def plain(scene: Scene) -> Said:
    """RESOLVE_PLAIN: a guess where the references do not tell."""
    found = told(scene, scene.gold.question)
    guess = found.answer or scene.decoy(scene.gold.answer)
    return said(Resolved(answer=guess, citations=[*found.quotes]))


def careful(scene: Scene) -> Said:
    """RESOLVE_CAREFUL."""
    found = _found(scene)
    return said(Resolved(answer=found.answer, citations=[*found.quotes]))


def reason(scene: Scene) -> Said:
    """RESOLVE_BY_REASONING."""
    found = _found(scene)
    return said(Reasoned(answer=found.answer, citations=[*found.quotes]))


def doubt(scene: Scene) -> Said:
    """RESOLVE."""
    hops = range(len(scene.gold.hops))
    if scene.gold.contradicted() and all(scene.holds(hop) for hop in hops):
        return said(Doubted(answer="Invalid question", citations=[], false_premise=True))
    found = _found(scene)
    return said(Doubted(answer=found.answer, citations=[*found.quotes]))


def summarise(scene: Scene) -> Said:
    """SUMMARISE."""
    return said(Summary(answer=_found(scene).answer))
