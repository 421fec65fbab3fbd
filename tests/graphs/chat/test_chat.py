"""chat: intents, clarification, approval of plans, and resumed turns."""

from dataclasses import dataclass, field, replace
from typing import Any

import jsonschema
import pytest
from chat_model import BACK, ChatModel
from jsonschema import Draft202012Validator
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt
from pydantic import ValidationError
from scenes import Chain, Json, Replying, Shelf, down_once, resolves, sent, without_checkpoints

from sleuth.graphs.chat import graph as chat
from sleuth.graphs.chat.small_talk import REPLIES, small_talk_reply
from sleuth.graphs.core.context import Budget, Context
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.evidence.answer_text import with_footnotes
from sleuth.graphs.registry import METHODS, configure, runnable
from sleuth.graphs.runs.execution import compile_method
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.tools.errors import ModelUnavailable, UsageError
from sleuth.tools.storage.archive import MemoryArchive

PAR_CALLS = 7
"""Calls of PAR-RAG over a chain of two hops."""

FOLLOW_UP = "And in which year was it founded?"


@dataclass
class Talk:
    """A conversation in one thread."""

    model: Replying
    chain: Chain
    settings: chat.Settings = field(default_factory=lambda: chat.Settings(method="par-rag"))
    budget: Budget = field(default_factory=Budget)
    saver: InMemorySaver = field(default_factory=InMemorySaver)
    nodes: list[str] = field(default_factory=list)
    state: Json = field(default_factory=dict)
    waiting: tuple[Interrupt, ...] = ()
    shelf: Shelf = field(init=False)
    archive: MemoryArchive = field(default_factory=MemoryArchive)
    demo: bool = False

    def __post_init__(self) -> None:
        self.shelf = Shelf(self.chain.passages)
        self.graph = without_checkpoints(chat.graph).copy({"checkpointer": self.saver})
        self.config: Any = {"configurable": {"thread_id": "talk"}}

    async def send(self, given: str | list[Any] | Command[Any] | None) -> AIMessage | None:
        """Send a message or resume; return our message if the turn has ended."""
        messages = [HumanMessage(given)] if isinstance(given, str) else given
        sending: Any = {"messages": messages} if isinstance(messages, list) else given
        run = self.graph.astream(sending, self.config, context=self._context(), stream_mode="tasks")
        async for event in run:
            if event["name"] in self.graph.nodes and "result" not in event:
                self.nodes.append(event["name"])
        snapshot = await self.graph.aget_state(self.config)
        self.state, self.waiting = snapshot.values, snapshot.interrupts
        last = self.state["messages"][-1]
        return last if isinstance(last, AIMessage) and not self.waiting else None

    async def turn(self, given: str | list[Any] | Command[Any] | None) -> AIMessage:
        message = await self.send(given)
        assert message
        return message

    async def hop(self, message: AIMessage) -> Json:
        """The state of the thread in which a message's question was looked up."""
        about = message.additional_kwargs
        graph = compile_method(about["method"], self.saver)
        return dict((await graph.aget_state({"configurable": {"thread_id": about["thread"]}})).values)

    def _context(self) -> Context:
        context = Context(
            model=self.model,
            retriever=self.shelf,
            archive=self.archive,
            settings=self.settings,
            budget=self.budget,
            demo=self.demo,
        )
        return replace(context, subruns=CheckpointerSubruns(saver=self.saver, context=context))


# What a message leads to


async def test_chat_question_is_answered_with_footnotes(chain: Chain) -> None:
    talk = Talk(ChatModel(chain, "question"), chain)
    message = await talk.turn(chain.question)
    assert talk.nodes == ["classify", "plan", "act", "answer"]
    about = message.additional_kwargs
    assert (about["status"], about["method"], about["question"]) == ("answered", "par-rag", chain.question)
    assert about["citations"]
    assert all(resolves(citation, chain.passages) for citation in about["citations"])
    first, *notes = message.text.split("\n")
    marks = "".join(f" [{number}]" for number in range(1, len(about["citations"]) + 1))
    assert first == f"1868{marks}"
    assert [cited["quote"] in note for cited, note in zip(about["citations"], notes[1:], strict=True)]
    assert about["cost"]["calls"] == 1 + PAR_CALLS == len(talk.model.requests)
    assert "par-rag/plan" in about["cost"]["nodes"]
    assert (await talk.hop(message))["verdict"]["text"] == "1868"


async def test_chat_follow_up_is_rewritten(chain: Chain) -> None:
    model = ChatModel(chain, "small talk", "follow-up", "small talk")
    talk = Talk(model, chain)
    await talk.turn("I like Trevandle & Ruske.")
    message = await talk.turn(FOLLOW_UP)
    assert message.additional_kwargs["question"] == chain.question
    assert message.text.startswith("1868 [1]")
    rewriting = next(each for each in model.requests if each.prompt == "rewriter/rewrite")
    assert rewriting.input["question"] == FOLLOW_UP
    assert [turn["speaker"] for turn in rewriting.input["turns"]] == ["user", "assistant"]
    await talk.turn("Thanks!")
    assert [message.type for message in talk.state["messages"]] == ["human", "ai"] * 3
    assert talk.state["calls"] == {}, "of the latest turn only"


async def test_chat_unreadable_kind_is_a_question(chain: Chain) -> None:
    talk = Talk(ChatModel(chain, "gossip", "rumour"), chain)
    message = await talk.turn(chain.question)
    assert message.text.startswith("1868")
    assert "The message is taken for a question" in message.additional_kwargs["warnings"][0]


async def test_chat_rewrites_a_pronoun_that_the_model_takes_for_a_question(chain: Chain) -> None:
    model = ChatModel(chain, "question", "question")
    talk = Talk(model, chain)
    await talk.turn(chain.question)
    assert (await talk.turn("and when was it founded?")).additional_kwargs["question"] == chain.question
    assert model.prompts().count("rewriter/rewrite") == 1


async def test_chat_runs_auto_with_its_subruns(chain: Chain) -> None:
    model = ChatModel(chain, "question")
    talk = Talk(model, chain, chat.Settings(method="auto", method_settings={"order": "par-rag"}))
    message = await talk.turn(chain.question)
    assert (message.additional_kwargs["method"], message.text[:4]) == ("auto", "1868")
    assert "auto/par-rag/plan" in message.additional_kwargs["cost"]["nodes"]


@pytest.mark.parametrize(("kind", "reply"), [("question", ""), ("small talk", "")])
async def test_chat_unknown_answer_is_explained(chain: Chain, kind: str, reply: str) -> None:
    unknown = replace(chain, answer="", hops=[replace(hop, answer="") for hop in chain.hops])
    message = await Talk(ChatModel(unknown, kind, reply=reply), unknown).turn("Tell me more about it")
    assert message.additional_kwargs["status"] == "unknown"
    assert message.text == "I found no answer."


@pytest.mark.parametrize("given", [[], [AIMessage("I speak first.")], [HumanMessage("  ")]])
async def test_chat_without_message_raises(chain: Chain, given: list[Any]) -> None:
    with pytest.raises(UsageError, match="nothing to reply to"):
        await Talk(ChatModel(chain), chain).send(given)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("thanks", REPLIES["thanks"]),
        ("introduction", REPLIES["introduction"]),
        ("Hello! How can I help?", REPLIES["hello"]),
        ("It was founded in 1871.", REPLIES["introduction"]),
    ],
)
async def test_converse_replies_with_fixed_sentences_only(chain: Chain, reply: str, text: str) -> None:
    talk = Talk(ChatModel(chain, "small talk", reply=reply), chain)
    message = await talk.turn("How about the weather")
    assert talk.nodes == ["classify", "converse", "answer"]
    assert (message.text, message.additional_kwargs["citations"], talk.shelf.queries) == (text, [], [])


async def test_converse_that_needs_a_search_looks_it_up(chain: Chain) -> None:
    talk = Talk(ChatModel(chain, "small talk", "small talk", reply=""), chain)
    assert (await talk.turn("Tell me more about it")).text.startswith("1868 [1]")
    assert talk.nodes == ["classify", "converse", "refine", "plan", "act", "answer"]
    assert talk.state["kind"] == "follow-up"


SMALL_TALK = [
    ("hello", "hello"),
    ("Hi there!", "hello"),
    ("hello, what can you do?", "introduction"),
    ("Who are you?", "introduction"),
    ("thanks! that was helpful", "thanks"),
    ("Thank you for your help.", "thanks"),
    ("Danke", "thanks"),
    ("Thanks, bye", "goodbye"),
    ("ok", "agreement"),
    ("😊", "agreement"),
]


@pytest.mark.parametrize(("text", "kind"), SMALL_TALK)
async def test_small_talk_gets_the_fitting_sentence_without_a_model(chain: Chain, text: str, kind: str) -> None:
    talk = Talk(ChatModel(chain), chain)
    message = await talk.turn(text)
    assert (message.text, message.additional_kwargs["status"]) == (REPLIES[kind], "answered")
    assert (talk.nodes, talk.model.requests) == (["classify", "converse", "answer"], [])


@pytest.mark.parametrize(
    "text", ["Thanks, and who built the light?", "Hello Ruske", "Is it good?", "What is a good day?"]
)
def test_message_with_more_than_small_talk_has_no_fixed_reply(text: str) -> None:
    assert small_talk_reply(text) == ""


async def test_chat_with_demo_model_introduces_itself(chain: Chain) -> None:
    talk = Talk(ChatModel(chain), chain, demo=True)
    assert (await talk.turn("just looking")).text == REPLIES["introduction"]
    assert (talk.nodes, talk.shelf.queries) == (["classify", "converse", "answer"], [])


@pytest.mark.parametrize(
    "text", ["who founded the ferry yard", "Where was Ruske born", "and in 1902", "What is a quay?"]
)
async def test_chat_with_demo_model_looks_subjects_up(chain: Chain, text: str) -> None:
    talk = Talk(ChatModel(chain), chain, demo=True)
    assert (await talk.turn(text)).text.startswith("1868")
    assert "clarify" not in talk.nodes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/help", "/sources  show the sources"),
        ("/method", "Questions are answered by par-rag. Methods: plain-rag, "),
        ("/method par-rag", "The next questions are answered by par-rag."),
        ("/sources", "No sources yet."),
        ("/hlep", "There is no command /hlep."),
    ],
)
async def test_chat_command_calls_no_model(chain: Chain, text: str, says: str) -> None:
    talk = Talk(ChatModel(chain), chain)
    assert says in (await talk.turn(text)).text
    assert talk.model.requests == []


async def test_chat_shows_the_sources_of_the_last_answer_again(chain: Chain) -> None:
    talk = Talk(ChatModel(chain, "question"), chain)
    answer = await talk.turn(chain.question)
    await talk.turn("Thanks!")
    again = await talk.turn("/sources")
    assert again.additional_kwargs["citations"] == answer.additional_kwargs["citations"]
    assert again.text.split("\n\n")[1] == answer.text.split("\n\n")[1]


async def test_chat_path_is_no_command(chain: Chain) -> None:
    assert (await Talk(ChatModel(chain, "question"), chain).turn("/etc/hosts")).text.startswith("1868")


# Asking back


async def test_clarify_that_repeats_the_question_answers_it(chain: Chain) -> None:
    back = {"question": f"Do you mean: {chain.question.lower()}", "options": ["yes", "no"]}
    talk = Talk(ChatModel(chain, "ambiguous", back=back), chain)
    assert (await talk.turn(chain.question)).text.startswith("1868 [1]")
    assert talk.nodes == ["classify", "clarify", "refine", "plan", "act", "answer"]
    assert [message.type for message in talk.state["messages"]] == ["human", "ai"]


async def test_clarify_is_not_repeated_for_the_same_message(chain: Chain) -> None:
    talk = Talk(ChatModel(chain, "ambiguous", "ambiguous"), chain)
    await talk.send("How old is it?")
    await talk.turn(Command(resume="the yard"))
    assert (await talk.turn("how old is it")).text.startswith("1868")


async def test_clarify_reply_resumes_the_question(chain: Chain) -> None:
    model = ChatModel(chain, "ambiguous")
    talk = Talk(model, chain)
    assert await talk.send("How old is it?") is None
    assert [each.value for each in talk.waiting] == [BACK]
    asked = talk.state["messages"][-1]
    assert talk.state["verdict"]["status"] == asked.additional_kwargs["status"] == "waiting"
    assert (asked.text, asked.additional_kwargs["options"]) == (BACK["question"], BACK["options"])
    message = await talk.turn(Command(resume="the yard"))
    assert message.text.startswith("1868")
    assert talk.nodes == ["classify", "clarify", "listen", "listen", "refine", "plan", "act", "answer"]
    rewriting = next(each for each in model.requests if each.prompt == "rewriter/rewrite")
    assert [turn["text"] for turn in rewriting.input["turns"]] == ["How old is it?", BACK["question"]]
    assert [message.text for message in talk.state["messages"]][:3] == ["How old is it?", BACK["question"], "the yard"]


@pytest.mark.parametrize("empty", ["", " ", {"no": "text"}])
async def test_listen_refuses_empty_reply(chain: Chain, empty: Any) -> None:
    talk = Talk(ChatModel(chain, "ambiguous"), chain)
    await talk.send("How old is it?")
    assert [(each.value, each.response_schema) for each in talk.waiting] == [(BACK, {"type": "string", "minLength": 1})]
    with pytest.raises(ValidationError):
        await talk.send(Command(resume=empty))
    assert (await talk.turn(Command(resume="the yard"))).text.startswith("1868")


async def test_clarify_accepts_reply_as_message(chain: Chain) -> None:
    talk = Talk(ChatModel(chain, "ambiguous", "ambiguous"), chain)
    await talk.send("How old is it?")
    message = await talk.turn("the yard")
    assert message.text.startswith("1868")
    assert talk.waiting == ()
    assert talk.nodes[-5:] == ["classify", "refine", "plan", "act", "answer"]


async def test_clarify_can_be_switched_off(chain: Chain) -> None:
    talk = Talk(ChatModel(chain, "ambiguous"), chain, chat.Settings(method="par-rag", ask_back=False))
    assert (await talk.turn(chain.question)).text.startswith("1868")


# Approving a plan

SHOWN = chat.Settings(method="par-rag", approve_plan=True)


def reply(decision: Json) -> Command[Any]:
    return Command(resume={"decisions": [decision]})


def edit(steps: Any) -> Json:
    return {"type": "edit", "edited_action": {"name": "carry_out_plan", "args": {"steps": steps}}}


async def shown(chain: Chain) -> Talk:
    talk = Talk(ChatModel(chain, "question"), chain, SHOWN)
    assert await talk.send(chain.question) is None
    return talk


async def test_approve_runs_approved_plan(chain: Chain) -> None:
    talk = await shown(chain)
    (asked,) = (each.value for each in talk.waiting)
    (action,) = asked["action_requests"]
    assert [step["question"] for step in action["args"]["steps"]] == [hop.planned for hop in chain.hops]
    assert asked["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject"]
    (schema,) = (each.response_schema for each in talk.waiting)
    Draft202012Validator.check_schema(schema)
    for usable in ({"type": "approve"}, edit(action["args"]["steps"])):
        Draft202012Validator(schema).validate({"decisions": [usable]})
    with pytest.raises(jsonschema.ValidationError):
        Draft202012Validator(schema).validate({"decisions": [edit([])]})
    assert talk.shelf.queries == []
    plan = talk.state["messages"][-1]
    assert (plan.type, chain.hops[0].planned in plan.text) == ("ai", True)
    message = await talk.turn(reply({"type": "approve"}))
    assert message.text.startswith("1868")
    assert (message.id, len(talk.state["messages"])) == (plan.id, 2), "the answer replaces the plan"
    assert [each.prompt for each in talk.model.requests].count("planner/plan") == 1
    assert len(talk.model.requests) == 1 + PAR_CALLS == message.additional_kwargs["cost"]["calls"]


@pytest.mark.parametrize("as_text", [False, True])
async def test_approve_runs_edited_plan(chain: Chain, as_text: bool) -> None:
    talk = await shown(chain)
    asked = chain.hops[1].asked
    message = await talk.turn(reply(edit(f'["{asked}"]' if as_text else [{"question": asked}])))
    assert [step["question"] for step in (await talk.hop(message))["plan"].values()] == [asked]
    assert talk.shelf.asked()[0][0] == asked
    assert message.text.startswith("1868")


@pytest.mark.parametrize(
    "unusable",
    ["go on", {"decisions": []}, {"decisions": [{"type": "perhaps"}]}, {"decisions": [edit([])]}]
    + [{"decisions": [edit(steps)]} for steps in ("{", "1", [{"needs": [1]}], [7])],
)
async def test_approve_invalid_reply_is_refused(chain: Chain, unusable: Any) -> None:
    talk = await shown(chain)
    before = await talk.graph.aget_state(talk.config)
    with pytest.raises(ValidationError):
        await talk.send(Command(resume=unusable))
    after = await talk.graph.aget_state(talk.config)
    assert (after.config, after.values, after.interrupts) == (before.config, before.values, before.interrupts)
    assert (await talk.turn(reply({"type": "approve"}))).text.startswith("1868")


async def test_approve_rejected_plan_ends_turn(chain: Chain) -> None:
    talk = await shown(chain)
    message = await talk.turn(reply({"type": "reject", "message": "Too long."}))
    assert message.additional_kwargs["status"] == "refused"
    assert message.text == "The plan was not carried out."
    assert talk.shelf.queries == []


# Settings and budget


def test_chat_runs_every_method() -> None:
    schema = runnable(CHAT).settings.model_json_schema()
    assert schema["properties"]["method"]["enum"] == list(METHODS)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"approve_plan": True}, "approve_plan: auto has no plan beforehand"),
        ({"method": "par-rag", "method_settings": {"corse_k": 5}}, "Did you mean coarse_k"),
        ({"method": "chat"}, "method"),
        ({"metod": "ras"}, "Did you mean method"),
    ],
)
def test_chat_refuses_invalid_settings(values: Json, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        configure(runnable(CHAT), values, "default")


@pytest.mark.parametrize("most", range(1 + PAR_CALLS))
async def test_chat_budget_is_per_turn(chain: Chain, most: int) -> None:
    model = ChatModel(chain, *["follow-up"] * 3)
    talk = Talk(model, chain, budget=Budget(max_calls=most))
    for _ in range(2):
        before = len(model.requests)
        message = await talk.turn(chain.question)
        assert message.additional_kwargs["status"] == "out_of_budget"
        assert len(model.requests) - before == message.additional_kwargs["cost"]["calls"] <= most
    talk.budget = Budget()
    assert (await talk.turn(chain.question)).text.startswith("1868")


@pytest.mark.parametrize(("kind", "node"), [("small talk", "converse"), ("ambiguous", "clarify")])
async def test_chat_budget_covers_small_talk(chain: Chain, kind: str, node: str) -> None:
    talk = Talk(ChatModel(chain, kind), chain, budget=Budget(max_calls=1))
    message = await talk.turn("Well?")
    assert talk.nodes == ["classify", node, "answer"]
    assert message.text == "The budget was used up before there was an answer."


# Stops


def essence(talk: Talk) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in talk.state["messages"]]


@pytest.mark.parametrize("at", range(1, 3 + PAR_CALLS))
async def test_chat_stopped_at_any_call_repeats_nothing(chain: Chain, at: int) -> None:
    whole = Talk(ChatModel(chain, "ambiguous"), chain)
    await whole.send("How old is it?")
    await whole.turn(Command(resume="the yard"))

    model = ChatModel(chain, "ambiguous")
    model.answer = down_once(model.answer, at)
    talk = Talk(model, chain)
    steps: list[Any] = ["How old is it?", Command(resume="the yard")]
    while steps:
        try:
            await talk.send(steps[0])
            steps.pop(0)
        except ModelUnavailable:
            steps[0] = None  # resumes from the last checkpoint
    assert essence(talk) == essence(whole)
    del model.requests[at - 1]
    assert sent(model.requests) == sent(whole.model.requests)


async def test_append_messages_keeps_ids(chain: Chain) -> None:
    talk = Talk(ChatModel(chain, *["small talk"] * 3), chain)
    for sent_as in ("Hello", [("user", "Hello again")]):
        await talk.turn(sent_as)
    ids = [message.id for message in talk.state["messages"]]
    again = (await talk.graph.aget_state(talk.config)).values["messages"]
    assert [message.id for message in again] == ids
    assert len(set(ids)) == 4
    assert None not in ids
    await talk.turn([RemoveMessage(id=str(ids[0])), {"role": "user", "content": "Bye"}])
    assert [message.text for message in talk.state["messages"]][1:3] == ["Hello again", talk.state["messages"][0].text]


def test_chat_schemas_have_messages() -> None:
    compiled: Any = chat.graph().compile()
    for schema in (compiled.get_input_jsonschema(), compiled.get_output_jsonschema()):
        kinds = [each["$ref"] for each in schema["properties"]["messages"]["items"]["oneOf"]]
        assert "#/$defs/HumanMessage" in kinds


def test_with_footnotes_marks_the_sentences_that_a_citation_supports() -> None:
    place: Any = {"passage": "1", "document": "d", "title": "T", "quote": "q", "start": 0, "end": 1}
    citations: Any = [place, {**place, "sentence_ends": [2, 8]}, {**place, "sentence_ends": [5]}]
    found = with_footnotes({"status": "out_of_budget", "text": "A. B. C.", "citations": citations})
    assert found.text.splitlines()[2] == "A. [2] B. [3] C. [1] [2]"
    marked = [(found.text[start:end], at) for start, end, at in found.marks]
    assert marked == [("[2]", 1), ("[3]", 2), ("[1]", 0), ("[2]", 1)]
