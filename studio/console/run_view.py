"""How runs look in a terminal: steps while they happen, the answer with its evidence, what it cost."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sleuth.graphs.core import Answer, Citation, Cost, Event, Graph, Step, Subrun
from sleuth.graphs.registry import runnable
from sleuth.tools.errors import RunError

STYLES = {"answered": "green", "refused": "yellow", "unknown": "yellow", "invalid_question": "yellow"}

_CITED = {"expression": "worked out", "graph": "knowledge graph", "model": "the model's own knowledge"}


async def watch(
    events: AsyncGenerator[Event], console: Console, *, on_stop: Callable[[str], Awaitable[None]] | None = None
) -> Answer:
    """Shows the steps of a run as they happen; returns its answer. A thread that is stopped is passed to `on_stop`."""
    thread = shown = ""
    try:
        async with aclosing(events) as stream:
            async for event in stream:
                if isinstance(event, Answer):
                    return event
                if not isinstance(event, Step):
                    continue
                if event.thread != shown:
                    shown, thread = event.thread, event.part_of or event.thread
                    console.print(Text(f"thread {shown}{f': {event.method}' if event.part_of else ''}", style="dim"))
                show_step(event, console)
    except asyncio.CancelledError:
        if thread and on_stop:
            await on_stop(thread)
        if thread:
            console.print(Text(f"Stopped. `sleuth resume {thread}` goes on from the last step.", style="yellow"))
        raise
    raise RunError("The run ended without an answer.")


def show_step(step: Step, console: Console) -> None:
    """A finished node in a line, and what it found out in further ones."""
    if step.state == "started":
        return
    node = Text.assemble(("● ", "cyan"), f"{step.method} " if step.part_of else "", (step.node, "bold"))
    console.print(node, Text(_summary(step.update), style="dim"))
    for line in runnable(step.method).summarize_update(step.update):
        console.print(Text(f"    {line}"), soft_wrap=True)


def _summary(update: dict[str, Any]) -> str:
    calls = [call for call in (update.get("calls") or {}).values() if call]  # None: forgotten, as a chat's turn begins
    tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
    seconds = sum(call["seconds"] for call in calls)
    return f"{_calls(len(calls))}, {tokens:,} tokens, {seconds:.1f} model seconds" if calls else ""


def _calls(number: int) -> str:
    return f"{number} model call{'' if number == 1 else 's'}"


def hops_view(hops: Sequence[Subrun]) -> RenderableType:
    """The methods that `auto` has asked, each with why it was its turn and its thread."""
    lines = []
    for number, hop in enumerate(hops, 1):
        status = hop["status"].replace("_", " ")
        sure = "" if hop["confidence"] is None else f", P(it holds) {hop['confidence']:.2f}"
        about = f"  {status}{sure}, {_calls(hop['cost']['calls'])}, thread {hop['thread']}"
        lines.append(Text.assemble(f"{number}. ", (hop["method"], "bold"), (about, "dim")))
        lines.append(Text(f"   because: {hop['why']}", style="dim"))
        lines += [Text(f"   it said: {hop['text']}", style="dim")] if hop["doubt"] and hop["text"] else []
    return Group(*lines)


def answer_view(answer: Answer) -> RenderableType:
    """The answer with its citations, the warnings, and the cost by node."""
    style = STYLES.get(answer.status, "red")
    text = answer.text or "(no answer)"
    title = Text(f" {answer.status.replace('_', ' ')} · {answer.method} · thread {answer.thread} ", style=style)
    parts: list[RenderableType] = [Panel(Text(text), title=title, title_align="left", border_style=style)]
    for at, citation in enumerate(answer.citations, 1):
        parts.append(Text(f"[{at}] “{citation['quote']}”"))
        parts.append(Text(f"    {_where(citation)}", style="dim"))
        if way := citation.get("why"):
            parts.append(Text(f"    found from {way['passage']} by the name “{way['name']}”", style="dim"))
    parts += [Text(f"! {warning}", style="yellow") for warning in answer.warnings]
    if answer.asks is not None:
        options = f" ({' / '.join(answer.asks['options'])})" if answer.asks.get("options") else ""
        reply = f"It waits for your reply{options}: sleuth ask REPLY --method chat --thread {answer.thread}"
        parts.append(Text(reply, style="cyan"))
    if answer.status == "out_of_budget":
        parts.append(Text(f"To go on with more: sleuth resume {answer.thread} --max-calls N", style="cyan"))
    if answer.threshold is not None:
        measure = "consistency" if answer.method == "retro-rag" else "perplexity"
        bound = f"{measure} threshold {answer.threshold['value']:.2f}: {answer.threshold['by']}"
        parts.append(Text(bound, style="dim"))
    return Group(*parts, *([hops_view(answer.hops)] if answer.hops else []), cost_table(answer.cost, answer.seconds))


def _where(citation: Citation) -> str:
    """A place in a document, or what else is cited: a calculation, a call to a knowledge graph, the model itself."""
    reference = citation.get("reference", "")
    if not citation["document"]:
        return f"{_CITED.get(citation.get('kind', ''), 'source')}: {reference}"
    place = f"{citation['document']}, characters {citation['start']}–{citation['end']}"
    return f"{citation['title']} ({', '.join(part for part in (reference, place) if part)})"


def graph_view(graph: Graph) -> RenderableType:
    """A question's graph, a line for each edge: what relates which entities, and where that stands."""
    names = {node["id"]: node["name"] for node in graph["nodes"]}
    lines = [Text(f"graph: {len(graph['nodes'])} entities, {len(graph['edges'])} relations", style="dim")]
    for edge in graph["edges"]:
        subject, object = (names.get(edge[end], edge[end]) for end in ("subject", "object"))
        where = (f"  [{', '.join(edge['passages'])}]", "dim")
        lines.append(Text.assemble(subject, (f" – {edge['predicate']} → ", "cyan"), object, where))
    return Group(*lines)


def cost_table(cost: Cost, seconds: float | None = None) -> Table:
    """Show calls, tokens and model seconds by node and in all, and the seconds that the run took."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("node", "calls", "prompt tokens", "completion tokens", "model seconds"):
        table.add_column(heading, justify="left" if heading == "node" else "right")
    for node, part in cost["nodes"].items():
        numbers = (part["calls"], part["prompt_tokens"], part["completion_tokens"])
        table.add_row(node, *(f"{number:,}" for number in numbers), f"{part['model_seconds']:.1f}")
    total = (cost["calls"], cost["prompt_tokens"], cost["completion_tokens"])
    table.add_row("all", *(f"{number:,}" for number in total), f"{cost['model_seconds']:.1f}", style="bold")
    if seconds is not None:
        table.add_row("took", *[""] * 3, f"{seconds:.1f} s", style="dim")
    return table
