"""Attributes by a majority vote of the model."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from sleuth.agents.llm.testing import ScriptedModel, reply
from sleuth.agents.model import Reply, Request
from sleuth.agents.roles.judging import InContextPredictor
from sleuth.tools.errors import BadReply, ModelUnavailable
from sleuth.tools.sources.question_attributes import Attributes


class Voters(ScriptedModel):
    """Scripted model with separate replies for each attribute."""

    def __init__(self, domains: Iterable[str], changes: Iterable[str]) -> None:
        super().__init__()
        self.left = {"classifier/domain": list(domains), "classifier/dynamic": list(changes)}

    async def call(self, request: Request) -> Reply:
        self.requests.append(request)
        return reply(self.left[request.prompt].pop(0))


@pytest.fixture
def vote(harness: Callable[..., Any]) -> Callable[..., Any]:
    async def ask(model: ScriptedModel, *, samples: int) -> tuple[Attributes, list[str]]:
        room = harness(model)
        found = await room.run(
            lambda caller: InContextPredictor(caller, samples=samples).predict("who leads the league?")
        )
        return found, room.caller.warnings

    return ask


async def test_predict_takes_the_majority(vote: Callable[..., Any]) -> None:
    model = Voters(["sports", "open", "sports"], ["static", "dynamic", "dynamic"])
    found, warnings = await vote(model, samples=3)
    assert (found, warnings) == (Attributes("sports", True), [])
    assert (found.domain_lead, found.dynamic_lead) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert len(model.requests) == 6


async def test_predict_unanimous_vote_has_full_lead(vote: Callable[..., Any]) -> None:
    found, _ = await vote(Voters(["music"] * 2, ["static"] * 2), samples=2)
    assert (found.domain_lead, found.dynamic_lead) == (1.0, 1.0)


@pytest.mark.parametrize("votes", [["open", "finance"], ["finance", "open"]])
async def test_predict_tie_does_not_depend_on_the_order(votes: list[str], vote: Callable[..., Any]) -> None:
    found, _ = await vote(Voters(votes, ["dynamic", "static"]), samples=2)
    assert found == Attributes("finance", False)
    assert found.domain_lead == found.dynamic_lead == 0


async def test_predict_samples_with_different_seeds(vote: Callable[..., Any]) -> None:
    model = Voters(["open"] * 3, ["static"] * 3)
    await vote(model, samples=3)
    assert len({request.sampling.seed for request in model.requests}) == 6
    assert all(request.sampling.temperature > 0 for request in model.requests)


async def test_predict_skips_an_unusable_sample_with_warning(vote: Callable[..., Any]) -> None:
    # Three samples are requested together, then the repairs of the unusable ones.
    found, warnings = await vote(Voters(["art", "movie", "movie", "still art"], ["static"] * 3), samples=3)
    assert found == Attributes("movie", False)
    assert found.domain_lead == 1.0
    assert len(warnings) == 1
    assert "The vote continues without this sample." in warnings[0]


async def test_predict_without_votes_raises_bad_reply(vote: Callable[..., Any]) -> None:
    with pytest.raises(BadReply):
        await vote(Voters(["art"] * 4, ["static"] * 2), samples=2)


async def test_predict_raises_if_the_server_is_down(vote: Callable[..., Any]) -> None:
    with pytest.raises(ModelUnavailable):
        await vote(ScriptedModel(["open", "static", ModelUnavailable("down"), "static"]), samples=2)


async def test_predictor_calls_is_the_number_of_requests(harness: Callable[..., Any]) -> None:
    model = Voters(["open"] * 4, ["static"] * 4)

    async def predict(caller: Any) -> int:
        predictor = InContextPredictor(caller, samples=4)
        await predictor.predict("who?")
        return predictor.calls

    assert await harness(model).run(predict) == len(model.requests) == 8
