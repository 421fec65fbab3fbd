"""Helpers for tests of the graph model: prompts with triples, as in RAS's roles, and expected replies."""

from typing import Any

from sleuth.agents.formatting import Facts, SubQuery, format_fact
from sleuth.agents.model import Message
from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.roles.inputs import QuestionInput
from sleuth.agents.roles.planning import BEGIN, NEXT, SoFar
from sleuth.agents.roles.reading import ANSWER_FROM_FACTS
from sleuth.tools.storage.triples import Triple

TOWNS = ("Varn", "Isk", "Orrel", "Tamm")


def so_far(*rounds: list[Triple], question: str = "Where was she born?") -> SoFar:
    """A chain of sub-queries, each with its triples."""
    facts, number = list[Facts](), 0
    for at, triples in enumerate(rounds, start=1):
        lines = [format_fact(number + place, triple) for place, triple in enumerate(triples, start=1)]
        number += len(triples)
        facts.append(Facts(query=at, text="\n".join(lines)))
    queries = tuple(SubQuery(text=f"Sub-query {at}?") for at in range(1, len(rounds) + 1))
    return SoFar(question=question, queries=queries, sources=tuple(facts))


def of_town(town: str) -> tuple[Message, ...]:
    """The answerer's prompt with two rounds, the second of which has the place."""
    first, second = [("the film", "directed by", "Oda")], [("Oda", "born in", town), (town, "lies in", "Kestrow")]
    return render_messages(ANSWER_FROM_FACTS, so_far(first, second))


def examples(count: int) -> list[dict[str, Any]]:
    """Planning and answering, as roles.data.examples writes them."""
    return [_example(at) for at in range(count)]


def _example(at: int) -> dict[str, Any]:
    town = TOWNS[at % len(TOWNS)]
    if at % 3 == 0:
        sent, prompt, reply = of_town(town), ANSWER_FROM_FACTS.prompt, f'{{"facts":[2],"answer":"{town}","known":true}}'
    elif at % 3 == 1:
        given = so_far([("the film", "directed by", f"Oda of {town}")])
        sent, prompt, reply = (
            render_messages(NEXT, given),
            NEXT.prompt,
            '{"plan":"[SUBQ]","query":"Where was Oda born?"}',
        )
    else:
        sent, prompt, reply = (
            render_messages(BEGIN, QuestionInput(question=f"Who is from {town}?")),
            BEGIN.prompt,
            "[SUBQ]",
        )
    return {"question": str(at), "prompt": prompt, "messages": list(sent), "reply": reply}
