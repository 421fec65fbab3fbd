"""The methods by name: what each is, where it was published, and how its graph is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from langgraph.graph import StateGraph
from pydantic import ValidationError

from sleuth.graphs import (
    agent,
    auto,
    chat,
    closed_book,
    crp_rag,
    hybrid_rag,
    ircot,
    iter_retgen,
    ladder,
    par_rag,
    plain_rag,
    ras,
    retro_rag,
    self_ask,
)
from sleuth.graphs.state import Context, MethodSettings, RunState
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.settings import Profile


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """One reasoning method: a graph from `question` to `verdict`.

    `calls` is how many model calls are typical: fewest to most on the answerable example questions, and on two hops.
    `benchmarks/calls_by_hop.py` counts them, simulated; empty where it has not been run yet. A `baseline` is
    there for comparison.
    """

    name: str
    line: str
    paper: str
    when: str
    graph: Callable[[], StateGraph[Any, Context, Any, Any]]
    state: type[RunState]
    settings: type[MethodSettings]
    calls: str = ""
    baseline: bool = False

    def nodes(self) -> list[str]:
        """The graph's nodes in the order of the method."""
        return list(self.graph().nodes)

    def ablations(self) -> list[str]:
        """The settings that switch off a part of the method to see what it is worth, as its paper does."""
        return [name for name, field in self.settings.model_fields.items() if "(ablation)" in (field.description or "")]

    def rungs(self) -> list[str]:
        """The steps in which the method was built, as its setting `rung` names them; most methods have none."""
        field = self.settings.model_fields.get("rung")
        return [rung for each in get_args(field.annotation) for rung in get_args(each)] if field else []

    def configure(self, values: Mapping[str, Any], profile: Profile) -> MethodSettings:
        """Settings from text or typed values; what is given explicitly holds in every profile.

        Raises:
            UsageError: an unknown key or a value out of range; the message names the nearest key or the range.
        """
        known = list(self.settings.model_fields)
        for key in values:
            if key not in known:
                raise UnknownName(f"setting of {self.name}", key, known, f"It has: {', '.join(known)}.")
        try:
            given = self.settings.model_validate(dict(values))
        except ValidationError as error:
            raise UsageError(f"A setting of {self.name} cannot be used: {faults(error)}.") from None
        if isinstance(given, auto.Settings):
            for name, chosen in given.hop_settings.items():
                method(name).configure(chosen, profile)
        if isinstance(given, chat.Settings):
            method(given.method).configure(given.method_settings, profile)
        if profile == "default":
            return given
        explicit = {key: getattr(given, key) for key in given.model_fields_set}
        return given.as_in_paper().model_copy(update=explicit)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="plain-rag",
            line="search once, read, answer",
            paper="the baseline of every comparison (Lewis et al., NeurIPS 2020)",
            when="one passage holds the answer, or as a baseline",
            calls="1",
            graph=plain_rag.graph,
            state=plain_rag.State,
            settings=plain_rag.Settings,
            baseline=True,
        ),
        Method(
            name="par-rag",
            line="plan all the steps, then act on and review each one against coarse and fine evidence",
            paper="Credible plan-driven RAG method for multi-hop question answering (Zhang et al., 2025)",
            when="the answer takes several look-ups that build on each other",
            calls="3 to 12; 6 on two hops",
            graph=par_rag.graph,
            state=par_rag.State,
            settings=par_rag.Settings,
        ),
        Method(
            name="crp-rag",
            line="grow a graph of possible steps, gather knowledge for each, answer along the paths where it suffices",
            paper="CRP-RAG, for complex logical reasoning and knowledge planning (Xu et al., Electronics 14(1), 2025)",
            when="there is more than one way to the answer, or a refusal is better than a guess",
            calls="3 to 27; 6 on two hops",
            graph=crp_rag.graph,
            state=crp_rag.State,
            settings=crp_rag.Settings,
        ),
        Method(
            name="retro-rag",
            line="collate evidence, reason from it and take it back, until an answer agrees with itself",
            paper="Retrieval-augmented generation by evidence retroactivity in LLMs (Xiao et al., 2025)",
            when="first finds mislead, and an early mistake must be undone by later evidence",
            calls="8 to 66; 18 on two hops",
            graph=retro_rag.graph,
            state=retro_rag.State,
            settings=retro_rag.Settings,
        ),
        Method(
            name="ras",
            line="search, turn what is found into a graph of the question's own, and plan the next search from it",
            paper="RAS: Retrieval-And-Structuring for knowledge-intensive LLM generation (Jiang et al., 2025)",
            when="facts from many passages have to be put together, and what they add up to should be seen",
            calls="8 to 26; 10 on two hops",
            graph=ras.graph,
            state=ras.State,
            settings=ras.Settings,
        ),
        Method(
            name="hybrid-rag",
            line="ask pages, tables, a calculator, a knowledge graph and the model itself, then reason over all of it",
            paper="A hybrid RAG system with comprehensive enhancement on complex reasoning (Yuan et al., KDD Cup 2024)",
            when="the question comes with web pages, needs numbers worked out, or may rest on something false",
            calls="0 to 7; 7 on two hops",
            graph=hybrid_rag.graph,
            state=hybrid_rag.State,
            settings=ladder.Settings,
        ),
        Method(
            name="auto",
            line="begin with a cheap method, check its answer, and go on with a stronger one where it does not hold",
            paper="none: our way of choosing among the methods above",
            when="you do not know how hard the question is, and an easy one should stay cheap",
            calls="2 to 14; 4 on two hops",
            graph=auto.graph,
            state=auto.State,
            settings=auto.Settings,
        ),
        Method(
            name="closed-book",
            line="answer from the model's own knowledge, without searching",
            paper="How much knowledge can you pack into the parameters of a language model? (Roberts et al., 2020)",
            when="you want to know what documents add to what the model knows by itself",
            calls="1",
            graph=closed_book.graph,
            state=closed_book.State,
            settings=closed_book.Settings,
            baseline=True,
        ),
        Method(
            name="iter-retgen",
            line="search, answer, search again with the answer, a fixed number of times",
            paper="Enhancing retrieval-augmented LLMs with iterative retrieval-generation synergy (Shao et al., 2023)",
            when="as a baseline of methods that search more than once, at a cost known beforehand",
            calls="3",
            graph=iter_retgen.graph,
            state=iter_retgen.State,
            settings=iter_retgen.Settings,
            baseline=True,
        ),
        Method(
            name="self-ask",
            line="ask follow-up questions, search for the answer to each, until the question can be answered",
            paper="Measuring and narrowing the compositionality gap in language models (Press et al., 2023)",
            when="as a baseline of methods that break a question up on the way",
            calls="3 to 9; 5 on two hops",
            graph=self_ask.graph,
            state=self_ask.State,
            settings=self_ask.Settings,
            baseline=True,
        ),
        Method(
            name="ircot",
            line="reason a sentence at a time, and search with each sentence for what the next one needs",
            paper="Interleaving retrieval with chain-of-thought reasoning (Trivedi et al., ACL 2023)",
            when="as the usual baseline of multi-hop question answering",
            calls="3 to 7; 4 on two hops",
            graph=ircot.graph,
            state=ircot.State,
            settings=ircot.Settings,
            baseline=True,
        ),
        Method(
            name="agent",
            line="a model with the search as its tool, which searches as often as it likes and then answers",
            paper="ReAct: synergizing reasoning and acting in language models (Yao et al., ICLR 2023)",
            when="as the baseline of methods whose steps are laid down: here the model alone decides",
            calls="2 to 5; 3 on two hops",
            graph=agent.graph,
            state=agent.State,
            settings=agent.Settings,
            baseline=True,
        ),
    )
}


CHAT = Method(
    name="chat",
    line="talk about the documents: what a message asks for is looked up by a method, in a thread of its own",
    paper="none: our way of having a conversation over the methods above",
    when="questions follow up on answers, and may have to be asked back",
    graph=chat.graph,
    state=chat.State,
    settings=chat.Settings,
)
"""No method, but run like one: it takes messages, and its threads go on."""


def faults(error: ValidationError) -> str:
    """What is wrong with settings, each fault after the setting's name."""
    found = [(fault["loc"], fault["msg"].lower().removeprefix("value error, ")) for fault in error.errors()]
    return "; ".join(f"{place[0]}: {message}" if place else message for place, message in found)


def runnable(name: str) -> Method:
    """The method of this name, or the chat."""
    return CHAT if name == CHAT.name else method(name)


def method(name: str) -> Method:
    """The method of this name; raises UnknownName with the nearest."""
    if name not in METHODS:
        raise UnknownName("method", name, list(METHODS), f"There are: {', '.join(METHODS)}.")
    return METHODS[name]
