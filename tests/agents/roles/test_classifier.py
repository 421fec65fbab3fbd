"""Attributes by a majority vote of the model."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from scripted_model import ScriptedModel, reply

from sleuth.agents.model import Reply, Request
from sleuth.agents.roles.judging import Attributes, vote_on_attributes


class Voters(ScriptedModel):
    """Scripted model with separate replies for each attribute; repairs, which come at any time, take the last ones."""

    def __init__(self, domains: Iterable[str], changes: Iterable[str]) -> None:
        super().__init__()
        self.left = {"classifier/domain": list(domains), "classifier/dynamic": list(changes)}

    async def call(self, request: Request) -> Reply:
        self.requests.append(request)
        repairs = any(message["role"] == "assistant" for message in request.messages)
        return reply(self.left[request.prompt].pop(-1 if repairs else 0))


@pytest.fixture
def vote(harness: Callable[..., Any]) -> Callable[..., Any]:
    async def ask(model: ScriptedModel, *, samples: int) -> tuple[Attributes, list[str]]:
        room = harness(model)
        found = await room.run(
            lambda caller: vote_on_attributes(caller, "who leads the league?", ((), ()), samples=samples)
        )
        return found, room.caller.warnings

    return ask


@pytest.mark.parametrize(
    ("domains", "changes", "expected"),
    [
        (["sports", "open", "sports"], ["static", "dynamic", "dynamic"], Attributes("sports", True)),
        (["music"] * 2, ["static"] * 2, Attributes("music", False)),
        (["open", "finance"], ["dynamic", "static"], Attributes("finance", False)),
        (["finance", "open"], ["static", "dynamic"], Attributes("finance", False)),
    ],
    ids=["majority", "unanimous", "tie", "tie in another order"],
)
async def test_predict_takes_the_majority_of_samples_with_different_seeds(
    domains: list[str], changes: list[str], *, expected: Attributes, vote: Callable[..., Any]
) -> None:
    model = Voters(domains, changes)
    found, warnings = await vote(model, samples=len(domains))
    assert (found, warnings) == (expected, [])
    assert len({request.sampling.seed for request in model.requests}) == len(model.requests) == 2 * len(domains)
    assert all(request.sampling.temperature > 0 for request in model.requests)


async def test_predict_skips_an_unusable_sample_with_warning(vote: Callable[..., Any]) -> None:
    # Three samples are requested together, then the repairs of the unusable ones.
    found, warnings = await vote(Voters(["art", "movie", "movie", "still art"], ["static"] * 3), samples=3)
    assert found == Attributes("movie", False)
    assert len(warnings) == 1
    assert "The vote continues without this sample." in warnings[0]


async def test_predict_keeps_the_votes_on_one_attribute_without_the_other(vote: Callable[..., Any]) -> None:
    found, warnings = await vote(Voters(["art"] * 10, ["dynamic"] * 5), samples=5)
    assert (found.domain, found.dynamic) == ("open", True)
    assert warnings[-1].endswith("The question counts as open.")
    found, warnings = await vote(Voters(["movie"] * 5, ["sometimes"] * 10), samples=5)
    assert (found.domain, found.dynamic) == ("movie", False)
    assert warnings[-1].endswith("The question counts as static.")
