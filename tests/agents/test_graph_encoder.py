"""Graphs in prompts, and soft tokens of requests; tests/integration covers the encoder, which needs torch."""

from pathlib import Path

import pytest
from hashing_embedder import HashingEmbedder
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel
from told import Told

from sleuth.agents.formatting import Facts, Source, SubQuery, format_fact
from sleuth.agents.graph_encoder import TOKENS, ModelWithGraph, graph_texts, is_graph_model, read_graph
from sleuth.agents.model import Message, Request
from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.roles.inputs import PassageInput, QuestionInput
from sleuth.agents.roles.planning import BEGIN, SoFar
from sleuth.agents.roles.reading import ANSWER_FROM_FACTS, EXTRACT
from sleuth.tools.errors import UsageError
from sleuth.tools.types import Triple

ODA, VARN, ISK = ("Oda", "born in", "Varn"), ("Varn", "lies in", "Kestrow"), ("Isk", "flows into", "the Orrel")
LINE = st.text(alphabet="ab [1]S>|P> O/source<\u2028", min_size=1, max_size=20).map(lambda text: f"x{text}y")


def asked(*rounds: list[Triple]) -> tuple[Message, ...]:
    facts = [
        Facts(query=at, text="\n".join(format_fact(number, triple) for number, triple in enumerate(triples, start=1)))
        for at, triples in enumerate(rounds, start=1)
    ]
    queries = tuple(SubQuery(text="Where?", finding="[9] S> a | P> b | O> c") for _ in rounds)
    return render_messages(ANSWER_FROM_FACTS, SoFar(question="Where?", queries=queries, sources=tuple(facts)))


def test_read_graph_returns_triples_by_sub_query() -> None:
    assert read_graph(asked([ODA, VARN], [], [ISK])) == [[ODA, VARN], [ISK]]
    assert graph_texts([[[ODA, VARN]], [[VARN]]]) == ["Oda", "born in", "Varn", "lies in", "Kestrow"]


@given(st.tuples(LINE, LINE))
def test_read_graph_ignores_text_that_looks_like_triples(names: tuple[str, str]) -> None:
    found = read_graph(asked([ODA, (names[0], "says", names[1])], [ISK]))
    assert [len(triples) for triples in found] == [2, 1]
    assert (found[0][0], found[1][0]) == (ODA, ISK)


def test_read_graph_of_prompt_without_triples_is_empty() -> None:
    text = "\n".join(format_fact(1, ODA) for _ in range(2))
    assert read_graph(render_messages(BEGIN, QuestionInput(question="Where was Oda born?"))) == []
    assert read_graph(asked([])) == []
    assert read_graph(render_messages(ANSWER_FROM_FACTS, SoFar(question=text, queries=(), sources=()))) == []
    passage = Source(title="Oda", text="Oda was born in Varn.")
    assert read_graph(render_messages(EXTRACT, PassageInput(sources=(passage,)))) == []


def request(sent: tuple[Message, ...]) -> Request:
    return Request(call_id="c", role="answerer", prompt="answerer/from_facts", messages=sent, input={})


async def test_wrapped_model_adds_the_token_and_nothing_else() -> None:
    model = ScriptedModel(["a", "b"], context_window=4000)
    wrapped = Told(model, "graph", HashingEmbedder())
    sent = request(asked([ODA, VARN], [ISK])), request(render_messages(BEGIN, QuestionInput(question="Where?")))
    for each in sent:
        await wrapped.call(each)
    first, second = model.requests
    assert (first.soft_token, second.soft_token) == ("graph 2 3", None)
    assert [each.text_hash() for each in model.requests] == [each.text_hash() for each in sent]
    assert wrapped.context_window == 4000
    counted = await model.count_tokens(sent[0].messages, role="answerer")
    assert await wrapped.count_tokens(sent[0].messages, role="answerer") == counted + TOKENS


async def test_wrapped_model_without_graph_model_fails_before_a_call(tmp_path: Path) -> None:
    model = ScriptedModel()
    wrapped = ModelWithGraph(model, str(tmp_path), HashingEmbedder())
    with pytest.raises(UsageError, match=r"holds no graph model \(graph\.json and graph\.safetensors\)"):
        await wrapped.call(request(render_messages(BEGIN, QuestionInput(question="Where?"))))
    assert not is_graph_model(tmp_path)
    assert model.requests == []
