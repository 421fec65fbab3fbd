"""Plans are completed for any dependencies of their steps."""

from hypothesis import given
from hypothesis import strategies as st

from sleuth.agents.roles.planning import OrderedStep, PlanStep
from sleuth.graphs.evidence.outcomes import make_note
from sleuth.graphs.methods.par_rag.extensions import answer_from_notes, dependents
from sleuth.graphs.methods.par_rag.steps import Plan, number_steps, ready_steps, trajectory

Needs = list[list[int]]
ANY_NEEDS = st.lists(st.lists(st.integers(1, 12), max_size=4), min_size=1, max_size=10)


def plan_of(needs: Needs) -> Plan:
    return number_steps([PlanStep(question=f"question {at}", needs=each) for at, each in enumerate(needs)])


@given(ANY_NEEDS, st.booleans())
def test_ready_steps_finish_every_plan(needs: Needs, parallel: bool) -> None:
    plan, done = plan_of(needs), {}
    while done.keys() != plan.keys():
        wave = ready_steps(plan, done, parallel=parallel)
        assert wave and not done.keys() & set(wave)
        assert parallel or len(wave) == 1
        assert all(need in done for key in wave for need in plan[key]["needs"])
        done |= {key: make_note(plan[key]["question"], "", []) for key in wave}
    assert done.keys() == plan.keys()
    assert ready_steps(plan, done, parallel=parallel) == []
    assert list(trajectory(plan, done)) == list(plan)


@given(ANY_NEEDS, st.data())
def test_dependents_are_later_and_reach_the_step(needs: Needs, data: st.DataObject) -> None:
    plan = plan_of(needs)
    key = data.draw(st.sampled_from(sorted(plan)))
    built = dependents(plan, key)
    assert key in built
    assert all(int(later) > int(key) and built & set(plan[later]["needs"]) for later in built - {key})
    assert not any(built & set(plan[other]["needs"]) for other in plan.keys() - built)


def test_answer_from_notes_moves_note_with_step_key() -> None:
    plan = number_steps([OrderedStep(question="Who is it?"), OrderedStep(question="Where is it?")])
    here, else_ = make_note("Where is it?", "here", []), make_note("When was it?", "then", [])
    assert answer_from_notes(plan, {"1": here, "2": else_}) == {"1": None, "2": here, "known 2": else_}
