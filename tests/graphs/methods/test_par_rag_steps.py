"""Plans are completed for any dependencies of their steps."""

from hypothesis import given
from hypothesis import strategies as st

from sleuth.agents.roles.planning import OrderedStep, PlanStep
from sleuth.graphs.evidence.outcomes import make_note
from sleuth.graphs.methods.par_rag.steps import (
    Draft,
    Plan,
    answer_from_notes,
    dependents,
    is_unfinished,
    number_steps,
    ready_steps,
    step_note,
    trajectory,
)

Needs = list[list[int]]
ANY_NEEDS = st.lists(st.lists(st.integers(1, 12), max_size=4), min_size=1, max_size=10)


def plan_of(needs: Needs) -> Plan:
    return number_steps([PlanStep(question=f"question {at}", needs=each) for at, each in enumerate(needs)])


@given(ANY_NEEDS, st.booleans())
def test_ready_steps_finish_every_plan(needs: Needs, side_by_side: bool) -> None:
    plan, done = plan_of(needs), {}
    while is_unfinished(plan, done):
        wave = ready_steps(plan, done, side_by_side=side_by_side)
        assert wave and not done.keys() & set(wave)
        assert side_by_side or len(wave) == 1
        assert all(need in done for key in wave for need in plan[key]["needs"])
        done |= {key: make_note(plan[key]["question"], "", []) for key in wave}
    assert done.keys() == plan.keys()
    assert ready_steps(plan, done, side_by_side=side_by_side) == []
    assert list(trajectory(plan, done)) == list(plan)


@given(ANY_NEEDS, st.data())
def test_dependents_are_later_and_reach_the_step(needs: Needs, data: st.DataObject) -> None:
    plan = plan_of(needs)
    key = data.draw(st.sampled_from(sorted(plan)))
    built = dependents(plan, key)
    assert key in built
    assert all(int(later) > int(key) and built & set(plan[later]["needs"]) for later in built - {key})
    assert not any(built & set(plan[other]["needs"]) for other in plan.keys() - built)


@given(ANY_NEEDS, st.data())
def test_ready_steps_finish_reopened_plan(needs: Needs, data: st.DataObject) -> None:
    plan = plan_of(needs)
    key = data.draw(st.sampled_from(sorted(plan)))
    left = plan.keys() - dependents(plan, key)
    assert ready_steps(plan, left, side_by_side=False)
    assert key in ready_steps(plan, left, side_by_side=True)


def test_number_steps_without_needs_are_sequential() -> None:
    plan = number_steps([OrderedStep(question="a", thought="t"), OrderedStep(question="b", action="Answer")])
    assert plan == {
        "1": {"thought": "t", "planned": "a", "question": "a", "action": "Retrieve", "needs": []},
        "2": {"thought": "", "planned": "b", "question": "b", "action": "Answer", "needs": ["1"]},
    }


def test_number_steps_needs_earlier_ones_only() -> None:
    plan = plan_of([[1, 2], [1, 1, 2, 3], [2, 1]])
    assert [step["needs"] for step in plan.values()] == [[], ["1"], ["1", "2"]]


def test_answer_from_notes_compares_words() -> None:
    plan = number_steps([OrderedStep(question="Who  is it?"), OrderedStep(question="Where is it?")])
    known = make_note("who is IT?", "x", [])
    assert answer_from_notes(plan, {"other": known}) == {"1": known, "other": None}


def test_answer_from_notes_moves_note_with_step_key() -> None:
    plan = number_steps([OrderedStep(question="Who is it?"), OrderedStep(question="Where is it?")])
    here, else_ = make_note("Where is it?", "here", []), make_note("When was it?", "then", [])
    assert answer_from_notes(plan, {"1": here, "2": else_}) == {"1": None, "2": here, "known 2": else_}


def test_trajectory_starts_with_inherited_notes() -> None:
    plan = plan_of([[], []])
    notes = {"2": make_note("b", "", []), "old": make_note("o", "", []), "1": make_note("a", "", [])}
    assert list(trajectory(plan, notes)) == ["old", "1", "2"]


def test_step_note_joins_remarks() -> None:
    step = plan_of([[]])["1"]
    draft = Draft(answer="x", citations=[])
    assert "remark" not in step_note(step, draft)
    assert step_note(step, draft, "doubted")["remark"] == "doubted"
    assert step_note({**step, "remark": "again"}, draft, "doubted")["remark"] == "again; doubted"
