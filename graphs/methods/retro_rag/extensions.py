"""Addition of ours to RetroRAG: inferences whose passages have left the evidence are tested again, or removed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles import judging
from sleuth.graphs.core.answer import Note
from sleuth.graphs.core.node import Call, gather_by_key
from sleuth.graphs.evidence.citations import find_support
from sleuth.graphs.evidence.outcomes import make_note
from sleuth.graphs.evidence.retrieval import as_sources
from sleuth.graphs.methods.retro_rag import evidence
from sleuth.graphs.methods.retro_rag.evidence import Notes, RemovedEvidence
from sleuth.tools.types import Passage

if TYPE_CHECKING:
    from sleuth.graphs.methods.retro_rag.graph import Settings, State


async def revise_orphans(
    state: "State", call: Call["Settings"], shown: Sequence[Passage]
) -> tuple[dict[str, Note | None], dict[str, RemovedEvidence]]:
    """Return the updates of inferences without passages; they are removed if the budget has no room to test them.

    Ablations leave them alone: without updating all passages leave in each round, and without evaluation of evidence
    nothing is tested.
    """
    settings, orphans = call.settings, {}
    if settings.update and (settings.orphans == "drop" or (settings.orphans == "test" and settings.evaluate_evidence)):
        left = {passage.id for passage in shown}
        every = evidence.inferences(state.notes)
        orphans = {key: found for key, found in every.items() if not left & set(found["passages"])}
    testing = settings.orphans == "test" and call.affords(len(orphans) * len(shown))
    kept = await _supported(call.model, orphans, shown) if testing else {}
    outcome = "no other passage supports it" if testing else "it was not tested again"
    removed = {}
    for key, found in orphans.items():
        if key not in kept:
            why = f"its passages have left ({', '.join(found['passages'])}): {outcome}"
            removed[f"{state.round} {key}"] = RemovedEvidence(round=state.round, what=found["finding"], why=why)
    return {**dict.fromkeys(orphans), **kept}, removed


async def _supported(model: ModelCaller, orphans: Notes, shown: Sequence[Passage]) -> dict[str, Note]:
    """Return the inferences that other passages support, with these as their passages; each passage is tested alone."""
    asks = {}
    for key, orphan in orphans.items():
        for at, passage in enumerate(shown):
            given = judging.AttributionInput(claim=orphan["finding"], sources=as_sources([passage]))
            asks[key, at] = evidence.judge(model, judging.ATTRIBUTION, given)
    scores = await gather_by_key(asks)
    kept = {}
    for key, orphan in orphans.items():
        saying = [passage for at, passage in enumerate(shown) if scores[key, at] > evidence.UNDECIDED]
        if saying:
            citations = find_support(orphan["finding"], saying)
            found = make_note(orphan["question"], orphan["finding"], citations, "its first passages have left")
            kept[key] = evidence.with_sources(found, saying)
    return kept
