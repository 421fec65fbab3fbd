"""Sub-runs: a node lets another method answer a question in a thread of its own."""

from asyncio import create_task
from collections.abc import Coroutine, Mapping
from contextvars import copy_context
from dataclasses import replace
from typing import Any, TypeVar, cast

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from langgraph.config import get_config

from sleuth.agents.llm.tracing import as_usage
from sleuth.agents.model_calls.caller import CallRecord
from sleuth.graphs.core.answer import Note, Subrun, Verdict, total_cost
from sleuth.graphs.core.answer_stream import AnswerStream, message_handlers
from sleuth.graphs.core.context import SubrunRequest, SubrunResult
from sleuth.graphs.core.node import Call
from sleuth.tools.errors import RunError
from sleuth.tools.text.markdown import escape_markdown

T = TypeVar("T")


async def run_subrun(
    call: Call[Any],
    *,
    method: str,
    number: int,
    values: dict[str, Any],
    notes: Mapping[str, Note] | None = None,
    plan: Mapping[str, Any] | None = None,
    answer: AnswerStream | None = None,
    reserved_calls: int = 0,
) -> SubrunResult:
    """Run a method with the rest of the budget, and stream its steps and its answer from this node.

    `answer` is the message of the answer; the caller finishes it. By default it is a message of its own. Of the budget
    of this node, `reserved_calls` model calls are left.
    """
    run, token_stream, config = call.context.subruns, call.context.token_stream, get_config()["configurable"]
    runtime, left, here = call.runtime, call.remaining(), copy_context()
    execution = runtime.execution_info
    assert execution is not None
    if run is None:
        raise RunError(
            "This graph runs other methods: set `subruns` of its Context to what runs them, as `sleuth.ask` does."
        )
    message = answer or AnswerStream()

    def stream(step: dict[str, Any]) -> None:
        runtime.stream_writer(step)
        message.write(step)

    budget = replace(left, max_calls=None if left.max_calls is None else left.max_calls - reserved_calls)
    subrun = SubrunRequest(
        number=number,
        method=method,
        question=call.state.question,
        notes=dict(notes or {}),
        values=values,
        budget=budget,
        parent=str(config.get("thread_id") or ""),
        checkpoint=str(config.get("checkpoint_map", {}).get("", "")),
        place=execution.task_id,
        on_step=lambda step: here.run(stream, step),
        plan=dict(plan or {}),
        wants_tokens=(lambda: here.run(token_stream.wants_tokens)) if token_stream else None,
        control=runtime.control,
    )
    end = await in_fresh_context(run(subrun))
    if message.has_text and answer is None:
        message.finish(
            AIMessage(escape_markdown(end.verdict["text"]), usage_metadata=as_usage(**total_cost(end.calls)))
        )
    return end


async def in_fresh_context(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a fresh `contextvars` context, so that LangGraph does not treat it as a subgraph of this node.

    Of the node's config only the callbacks are kept, so that a tracer of the caller also receives this work. The
    `messages` stream of the caller is left out: its messages come from this node.
    """
    variables, callbacks = copy_context(), ensure_config().get("callbacks")  # both are copies
    if isinstance(callbacks, BaseCallbackManager):
        for handler in message_handlers(callbacks):
            callbacks.remove_handler(handler)
    variables.run(var_child_runnable_config.set, RunnableConfig(callbacks=callbacks) if callbacks else None)
    return await create_task(work, context=variables)


def new_subrun(method: str, why: str) -> Subrun:
    """Return the record of a sub-run that has not begun."""
    return Subrun(
        method=method,
        why=why,
        thread="",
        status="queued",
        text="",
        citations=[],
        confidence=None,
        doubt="",
        notes=[],
        cost=total_cost({}),
    )


def with_result(subrun: Subrun, end: SubrunResult, notes: list[str]) -> Subrun:
    """Return the record of a sub-run with its result; `notes` are the keys of its findings."""
    return Subrun(**{**subrun, **end.verdict, "thread": end.thread, "notes": notes, "cost": total_cost(end.calls)})


def verdict_of(subrun: Subrun) -> Verdict:
    """Return the verdict of a sub-run that has ended."""
    verdict = {name: value for name, value in subrun.items() if name in Verdict.__annotations__}
    return cast(Verdict, verdict)


def prefix_nodes(method: str, end: SubrunResult) -> dict[str, CallRecord]:
    """Return the calls of a sub-run as calls of the outer run, with nodes named `method/node`."""
    return {id: {**call, "node": f"{method}/{call['node']}"} for id, call in end.calls.items()}
