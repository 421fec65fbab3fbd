"""Attributes by a vote of the model."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from sleuth.agents.llm.testing import ScriptedModel, reply
from sleuth.agents.model import Reply, Request
from sleuth.agents.roles.judging import InContextPredictor
from sleuth.tools.errors import BadReply, ModelUnavailable
from sleuth.tools.sources.question_attributes import Attributes


class Voters(ScriptedModel):
    """Each attribute has its own replies, whichever is asked for first."""

    def __init__(self, domains: Iterable[str], changes: Iterable[str]) -> None:
        super().__init__()
        self.left = {"classifier/domain": list(domains), "classifier/dynamic": list(changes)}

    async def call(self, request: Request) -> Reply:
        self.requests.append(request)
        return reply(self.left[request.prompt].pop(0))


@pytest.fixture
def vote(office: Callable[..., Any]) -> Callable[..., Any]:
    async def ask(model: ScriptedModel, *, samples: int) -> tuple[Attributes, list[str]]:
        room = office(model)
        found = await room.run(lambda desk: InContextPredictor(desk, samples=samples).predict("who leads the league?"))
        return found, room.desk.warnings

    return ask


async def test_most_votes_win(vote: Callable[..., Any]) -> None:
    model = Voters(["sports", "open", "sports"], ["static", "dynamic", "dynamic"])
    found, warnings = await vote(model, samples=3)
    assert (found, warnings) == (Attributes("sports", True), [])
    assert (found.domain_lead, found.dynamic_lead) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert len(model.requests) == 6


async def test_all_votes_for_one_lead_by_all(vote: Callable[..., Any]) -> None:
    found, _ = await vote(Voters(["music"] * 2, ["static"] * 2), samples=2)
    assert (found.domain_lead, found.dynamic_lead) == (1.0, 1.0)


@pytest.mark.parametrize("votes", [["open", "finance"], ["finance", "open"]])
async def test_a_tie_is_the_same_whoever_votes_first(votes: list[str], vote: Callable[..., Any]) -> None:
    found, _ = await vote(Voters(votes, ["dynamic", "static"]), samples=2)
    assert found == Attributes("finance", False)
    assert found.domain_lead == found.dynamic_lead == 0


async def test_samples_are_drawn_with_seeds_of_their_own(vote: Callable[..., Any]) -> None:
    model = Voters(["open"] * 3, ["static"] * 3)
    await vote(model, samples=3)
    assert len({request.sampling.seed for request in model.requests}) == 6
    assert all(request.sampling.temperature > 0 for request in model.requests)


async def test_a_sample_that_says_something_else_does_not_count(vote: Callable[..., Any]) -> None:
    # Three samples are asked for together, then the repairs of those that are of no use.
    found, warnings = await vote(Voters(["art", "movie", "movie", "still art"], ["static"] * 3), samples=3)
    assert found == Attributes("movie", False)
    assert found.domain_lead == 1.0
    assert len(warnings) == 1
    assert "The vote continues without this sample." in warnings[0]


async def test_without_any_vote_there_is_no_guess(vote: Callable[..., Any]) -> None:
    with pytest.raises(BadReply):
        await vote(Voters(["art"] * 4, ["static"] * 2), samples=2)


async def test_a_server_that_is_down_is_no_vote(vote: Callable[..., Any]) -> None:
    with pytest.raises(ModelUnavailable):
        await vote(ScriptedModel(["open", "static", ModelUnavailable("down"), "static"]), samples=2)


async def test_a_predictor_takes_as_many_calls_as_it_says(office: Callable[..., Any]) -> None:
    model = Voters(["open"] * 4, ["static"] * 4)

    async def predict(desk: Any) -> int:
        predictor = InContextPredictor(desk, samples=4)
        await predictor.predict("who?")
        return predictor.calls

    assert await office(model).run(predict) == len(model.requests) == 8
