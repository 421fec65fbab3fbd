"""A plan always gets done, whatever needs what."""

from hypothesis import given
from hypothesis import strategies as st

from sleuth.agents.roles.planning import OrderedStep, PlanStep
from sleuth.graphs.evidence.outcomes import note
from sleuth.graphs.methods.par_rag.steps import (
    Draft,
    Plan,
    already_known,
    built_on,
    numbered,
    ready,
    step_note,
    trajectory,
    unfinished,
)

Needs = list[list[int]]
ANY_NEEDS = st.lists(st.lists(st.integers(1, 12), max_size=4), min_size=1, max_size=10)


def plan_of(needs: Needs) -> Plan:
    return numbered([PlanStep(question=f"question {at}", needs=each) for at, each in enumerate(needs)])


@given(ANY_NEEDS, st.booleans())
def test_every_plan_is_done_in_waves_that_have_what_they_need(needs: Needs, side_by_side: bool) -> None:
    plan, done = plan_of(needs), {}
    while unfinished(plan, done):
        wave = ready(plan, done, side_by_side=side_by_side)
        assert wave and not done.keys() & set(wave)
        assert side_by_side or len(wave) == 1
        assert all(need in done for key in wave for need in plan[key]["needs"])
        done |= {key: note(plan[key]["question"], "", []) for key in wave}
    assert done.keys() == plan.keys()
    assert ready(plan, done, side_by_side=side_by_side) == []
    assert list(trajectory(plan, done)) == list(plan)


@given(ANY_NEEDS, st.data())
def test_what_is_built_on_a_step_is_later_and_reaches_it(needs: Needs, data: st.DataObject) -> None:
    plan = plan_of(needs)
    key = data.draw(st.sampled_from(sorted(plan)))
    built = built_on(plan, key)
    assert key in built
    assert all(int(later) > int(key) and built & set(plan[later]["needs"]) for later in built - {key})
    assert not any(built & set(plan[other]["needs"]) for other in plan.keys() - built)


@given(ANY_NEEDS, st.data())
def test_a_reopened_plan_gets_done_again(needs: Needs, data: st.DataObject) -> None:
    plan = plan_of(needs)
    key = data.draw(st.sampled_from(sorted(plan)))
    left = plan.keys() - built_on(plan, key)
    assert ready(plan, left, side_by_side=False)
    assert key in ready(plan, left, side_by_side=True)


def test_steps_without_needs_of_their_own_follow_one_another() -> None:
    plan = numbered([OrderedStep(question="a", thought="t"), OrderedStep(question="b", action="Answer")])
    assert plan == {
        "1": {"thought": "t", "planned": "a", "question": "a", "action": "Retrieve", "needs": []},
        "2": {"thought": "", "planned": "b", "question": "b", "action": "Answer", "needs": ["1"]},
    }


def test_a_step_needs_only_earlier_ones() -> None:
    plan = plan_of([[1, 2], [1, 1, 2, 3], [2, 1]])
    assert [step["needs"] for step in plan.values()] == [[], ["1"], ["1", "2"]]


def test_a_question_is_known_by_its_words() -> None:
    plan = numbered([OrderedStep(question="Who  is it?"), OrderedStep(question="Where is it?")])
    known = note("who is IT?", "x", [])
    assert already_known(plan, {"other": known}) == {"1": known, "other": None}


def test_what_was_handed_over_under_a_steps_key_does_not_pass_for_the_step() -> None:
    plan = numbered([OrderedStep(question="Who is it?"), OrderedStep(question="Where is it?")])
    here, else_ = note("Where is it?", "here", []), note("When was it?", "then", [])
    assert already_known(plan, {"1": here, "2": else_}) == {"1": None, "2": here, "known 2": else_}


def test_what_was_handed_over_comes_first() -> None:
    plan = plan_of([[], []])
    notes = {"2": note("b", "", []), "old": note("o", "", []), "1": note("a", "", [])}
    assert list(trajectory(plan, notes)) == ["old", "1", "2"]


def test_a_note_keeps_the_remark_of_its_step_and_the_doubt_of_its_review() -> None:
    step = plan_of([[]])["1"]
    draft = Draft(answer="x", citations=[])
    assert "remark" not in step_note(step, draft)
    assert step_note(step, draft, "doubted")["remark"] == "doubted"
    assert step_note({**step, "remark": "again"}, draft, "doubted")["remark"] == "again; doubted"
