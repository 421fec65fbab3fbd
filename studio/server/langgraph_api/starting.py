"""Start a run from a request: a question, a message, a reply to an interrupt, or a branch."""

import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.messages import convert_to_messages

from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence import NAME, StoredOptions, Thread, Turn
from sleuth.graphs.registry import CHAT
from sleuth.graphs.runs import check_question, fork_run, now
from sleuth.graphs.runs.chat_turns import Reply, add_turn
from sleuth.studio.server.langgraph_api.access import Access
from sleuth.studio.server.langgraph_api.assistants import find_graph
from sleuth.studio.server.langgraph_api.forms import AssistantRunForm
from sleuth.studio.server.langgraph_api.run_ids import run_id_of
from sleuth.studio.server.langgraph_api.views import is_empty
from sleuth.tools.errors import RunError, UsageError

_NO_REPLIES = {"ask_back": False, "approve_plan": False}
"""Settings of a chat whose client keeps no thread: nobody can reply."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """A run that was started: its thread, its id, and the event before its first one."""

    thread: str
    run: str
    after: int


async def create_thread(access: Access, name: str | None, metadata: dict[str, Any]) -> Thread:
    """Store a thread without a run; the first run replaces its row.

    Raises:
        RunError: the thread exists already.
    """
    id = access.stored_id(name) if name else str(uuid4())
    if await access.runs.store.threads.exists(id):
        raise RunError(f"Thread {name} exists already: choose another id, or pass if_exists=do_nothing.")
    options = StoredOptions(
        values={},
        profile=access.server.settings.profile,
        budget=Budget(),
        turn=Turn(text="", at="-"),  # nothing to send
        langgraph_metadata=metadata,
    )
    created = now()
    thread = Thread(
        id=id,
        owner=access.owner,
        method=CHAT.name,
        question="",
        options=options,
        created_at=created,
        updated_at=created,
    )
    await access.runs.store.threads.add(thread)
    return thread


async def start_run(access: Access, form: AssistantRunForm, name: str | None) -> Started:
    """Start a run in the background, in a thread of the owner or in a new one.

    Args:
        access: the threads of the owner.
        form: the request.
        name: the thread, or None for a new one that the client does not continue.

    Raises:
        UnknownName: there is no such assistant, thread or checkpoint.
        UsageError: the input or a setting cannot be used, or the owner has no documents.
        RunError: the thread has a question already, or is running.
        QuotaUsedUp: the owner's daily token quota is exhausted.
    """
    server, method = access.server, find_graph(form.assistant_id).name
    settings = {**form.settings(), **(_NO_REPLIES if name is None and method == CHAT.name else {})}
    thread = await _thread(access, form, name)
    await server.require_ready(access.owner)
    if form.multitask_strategy == "interrupt" and await server.run_worker.is_running(thread.id):
        await server.run_worker.stop(thread.id)
    await server.run_worker.require_idle(thread.id)
    stored = await server.log.after(thread.id, 0)
    after = stored[-1].id if stored else 0
    if is_empty(thread):
        await _begin(access, thread, form, method, settings)
    else:
        await _continue(access, thread, form, method, settings)
    budget = form.budget() if form.input is None and not form.is_reply and form.budget() != Budget() else None
    await server.run_worker.start(access.owner, thread.id, budget=budget)
    return Started(thread=thread.id, run=run_id_of(thread.id, after), after=after)


async def _thread(access: Access, form: AssistantRunForm, name: str | None) -> Thread:
    if name is None or (form.if_not_exists == "create" and await access.find(name) is None):
        return await create_thread(access, name, {})
    return await access.thread(name)


async def _begin(access: Access, thread: Thread, form: AssistantRunForm, method: str, settings: dict[str, Any]) -> None:
    """Replace the row of an empty thread with that of its first run."""
    given, message_id = _question(form, method)
    question = check_question(given)
    threads = access.runs.store.threads
    find_graph(method).configure(settings, access.server.settings.profile)  # raises before the row is removed
    await threads.remove(thread.id)
    await access.runs.start(
        question,
        method,
        values=settings,
        profile=access.server.settings.profile,
        budget=form.budget(),
        thread=thread.id,
    )
    begun = await threads.get(thread.id)
    update: dict[str, Any] = {"langgraph_metadata": thread.options.langgraph_metadata}
    if turn := begun.options.turn:
        update["turn"] = turn.model_copy(update={"id": message_id})
    await threads.set_options(thread.id, begun.options.model_copy(update=update))


async def _continue(
    access: Access, thread: Thread, form: AssistantRunForm, method: str, settings: dict[str, Any]
) -> None:
    """Store the next input of a thread, or a branch of it; without either it is resumed."""
    if thread.method != method:
        raise UsageError(f"Thread {access.public_id(thread.id)} belongs to {thread.method}, not to {method}.")
    if method == CHAT.name and (form.is_reply or form.input is not None):
        assert form.command or form.input is not None
        reply = Reply(value=form.command.resume) if form.command and form.is_reply else None
        text, message_id = ("", "") if reply else _question(form, method)
        await add_turn(
            access.runs,
            thread,
            reply or check_question(text),
            start=form.place,
            message_id=message_id,
            values=settings or thread.options.values,
            budget=form.budget(),
        )
    elif form.input is not None or form.is_reply:
        raise RunError(f"Thread {access.public_id(thread.id)} has a question already. Start a new thread, or fork it.")
    elif form.place and form.place != await _latest(access, thread):
        await fork_run(access.runs, thread.id, at=form.place)


async def _latest(access: Access, thread: Thread) -> str:
    state = await access.runs.graph(thread).aget_state(access.runs.config(thread))
    return str(state.config["configurable"].get("checkpoint_id", ""))


def _question(form: AssistantRunForm, method: str) -> tuple[str, str]:
    """Return the question of a run's input: its one message with the id that the client has given to it, or its field
    `question`, which only methods have.
    """
    given = form.input or {}
    if method != CHAT.name and "messages" not in given:
        if set(given) != {"question"} or not isinstance(given["question"], str):
            either = '{"question": "…"} or {"messages": [one message with the role "user"]}'
            raise UsageError(f"The input of {method} is {either}. It has no other fields.")
        return given["question"], ""
    messages: Any = given.get("messages")
    try:
        found = convert_to_messages(messages if isinstance(messages, list) else [messages])
    except (ValueError, NotImplementedError, TypeError, KeyError, AttributeError):
        found = []
    if len(found) != 1 or found[0].type != "human":
        raise UsageError(f'The input of {method} is {{"messages": [one new message with the role "user"]}}.')
    if isinstance(found[0].content, list) and any(
        isinstance(block, dict) and block.get("type") != "text" for block in found[0].content
    ):
        raise UsageError("A message contains text only: upload documents with `sleuth ingest` or POST /v1/documents.")
    id = found[0].id or ""
    return str(found[0].text), id if re.fullmatch(NAME, id) else ""
