"""Terminal views of runs: live steps, the answer with its evidence, the cost."""

import asyncio
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from textwrap import shorten
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from sleuth.graphs.core.answer import Answer, Citation, Cost, Graph, Subrun, Support, is_weak
from sleuth.graphs.core.events import Event, Step
from sleuth.graphs.evidence.answer_text import with_marks
from sleuth.graphs.registry import runnable
from sleuth.studio.console.output import Listing, counted
from sleuth.tools.errors import RunError

STYLES = {"answered": "green", "refused": "white", "unknown": "white", "invalid_question": "white"}

_CITED = {"expression": "worked out", "graph": "knowledge graph", "model": "the model's own knowledge"}


async def watch(
    events: AsyncGenerator[Event],
    console: Console,
    *,
    on_stop: Callable[[str], Awaitable[None]] | None = None,
    verbose: bool = False,
    in_chat: bool = False,
) -> Answer:
    """Print the steps of a run as they finish; return its answer. On cancellation, call `on_stop` with the thread.

    With `verbose`, also print the findings and model calls of each step, and the thread of each sub-run; with
    `in_chat`, neither threads nor commands.
    """
    thread = latest = ""
    try:
        async with aclosing(events) as stream:
            async for event in stream:
                if isinstance(event, Answer):
                    return event
                if not isinstance(event, Step):
                    continue
                if event.thread != latest and (verbose or not (in_chat or thread)):
                    about = f": {event.method}" if event.part_of else ""
                    console.print(Text(f"thread {event.thread}{about}", style="dim"))
                latest, thread = event.thread, event.part_of or event.thread
                show_step(event, console, verbose=verbose)
    except asyncio.CancelledError:
        if thread and on_stop:
            await on_stop(thread)
        if thread:
            remedy = "Press Enter to resume it." if in_chat else f"To resume from the last step: sleuth resume {thread}"
            console.print(Text(f"Stopped. {remedy}", style="yellow"))
        raise
    raise RunError("The run ended without an answer.")


def show_step(step: Step, console: Console, *, verbose: bool) -> None:
    """Print a line for a finished node; if `verbose` with its model calls, and a line for each of its findings."""
    if step.state == "started":
        return
    node = Text.assemble(("● ", "cyan"), f"{step.method} " if step.part_of else "", (step.node, "bold"))
    lines = runnable(step.method).summarize_update(step.update)
    if not verbose:
        about = Text.assemble(node, ": " if lines else "", ("; ".join(lines), "dim"))
        console.print(about, no_wrap=True, overflow="ellipsis" if console.is_terminal else None)
        return
    console.print(node, Text(_summary(step.update), style="dim"))
    for line in lines:
        console.print(Text(f"    {line}"), soft_wrap=True)


def _summary(update: dict[str, Any]) -> str:
    # A call is None if it was removed at the start of a chat's turn.
    calls = [call for call in (update.get("calls") or {}).values() if call]
    tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
    seconds = sum(call["seconds"] for call in calls)
    return f"{counted(len(calls), 'model call')}, {tokens:,} tokens, {seconds:.1f} model seconds" if calls else ""


def subruns_view(subruns: Sequence[Subrun]) -> RenderableType:
    """Return the methods that `auto` ran, each with its reason and thread."""
    lines = []
    for number, subrun in enumerate(subruns, 1):
        status = outcome_in_words(subrun["status"], weak=None)
        sure = "" if subrun["confidence"] is None else f", P(correct) {subrun['confidence']:.2f}"
        about = f"  {status}{sure}, {counted(subrun['cost']['calls'], 'model call')}, thread {subrun['thread']}"
        lines.append(Text.assemble(f"{number}. ", (subrun["method"], "bold"), (about, "dim")))
        lines.append(Text(f"   reason: {subrun['why']}", style="dim"))
        text = shorten(subrun["text"], 200, placeholder="…")
        lines += [Text(f"   answer: {text}", style="dim")] if subrun["doubt"] and text else []
    return Group(*lines)


def outcome_in_words(outcome: str, *, weak: bool | None) -> str:
    """Return the outcome of a run as users read it."""
    words = {"unknown": "no answer found"}.get(outcome, outcome.replace("_", " "))
    return "weakly supported" if weak else words


def answer_view(answer: Answer, *, in_chat: bool = False) -> RenderableType:
    """Return the answer with its citations, warnings, sub-runs and cost by node.

    With `in_chat`, threads, sub-runs and commands are left out, and the cost is a line.
    """
    if answer.is_small_talk:
        return Group(Text(answer.text), sources_view(answer.citations))
    style = "yellow" if answer.is_weak else "white" if answer.is_unchecked else STYLES.get(answer.status, "red")
    cites_sentences = any("sentence_ends" in citation for citation in answer.citations)
    marked = with_marks(answer.text, answer.citations)
    text = (marked.text if cites_sentences else answer.text) or "(no answer)"
    status = "not checked" if answer.is_unchecked else outcome_in_words(answer.status, weak=answer.is_weak)
    about = "" if in_chat else f"· {answer.method} · thread {answer.thread} "
    title = Text(f" {status} {about}", style=style)
    parts: list[RenderableType] = [Panel(Text(text), title=title, title_align="left", border_style=style)]
    parts.append(sources_view(answer.citations, marked.form))
    if answer.support is not None:
        parts.append(support_view(answer.status, answer.support))
    parts += [Text(f"! {warning}", style="yellow") for warning in answer.warnings]
    if answer.ask_all is not None and not in_chat:
        offer = f"This question seems to be about all {answer.ask_all} documents. To ask each of them: sleuth survey"
        parts.append(Text(f"{offer} {shlex.quote(answer.question)}", style="cyan"))
    if answer.asks is not None:
        options = f" ({' / '.join(answer.asks['options'])})" if answer.asks.get("options") else ""
        command = "" if in_chat else f": sleuth ask REPLY --method {answer.method} --thread {answer.thread}"
        parts.append(Text(f"Waiting for your reply{options}{command}", style="cyan"))
    if answer.status == "out_of_budget":
        parts.append(
            Text(f"To continue with a larger budget: sleuth resume {answer.thread} --max-calls N", style="cyan")
        )
    if answer.threshold is not None:
        measure = "consistency" if answer.method == "retro-rag" else "perplexity"
        bound = f"{measure} threshold {answer.threshold['value']:.2f}: {answer.threshold['by']}"
        parts.append(Text(bound, style="dim"))
    if in_chat or not (answer.cost["calls"] or answer.hops):
        took = f", {answer.seconds:.1f} s"
        return Group(*parts, Text(f"{counted(answer.cost['calls'], 'model call')}{took}", style="dim"))
    return Group(*parts, *([subruns_view(answer.hops)] if answer.hops else []), cost_table(answer.cost, answer.seconds))


def support_view(status: str, support: Support) -> RenderableType:
    """Return how well the sources support an answer, and another answer that they support more."""
    how = "do not support an answer" if status != "answered" else "support this answer"
    how += " only weakly" if is_weak(status, support) else ""
    lines: list[RenderableType] = [Text(f"The sources {how} (support {support['score']:.2f}).", style="dim")]
    if also := support.get("also"):
        lines += [Text(f"Sources also say: {also['text']}", style="yellow"), sources_view(also["citations"])]
    return Group(*lines)


def sources_view(citations: Sequence[Citation], form: str = "[{}]") -> RenderableType:
    """Return the quotes of an answer with their marks in a form, and their places."""
    lines: list[Text] = []
    for at, citation in enumerate(citations, 1):
        lines.append(Text(f"{form.format(at)} “{citation['quote']}”"))
        lines.append(Text(f"    {_where(citation)}", style="dim"))
        if link := citation.get("why"):
            lines.append(Text(f"    found from {link['passage']} by the name “{link['name']}”", style="dim"))
        if citation.get("changed"):
            lines.append(Text("    the document has changed since this answer; ask again", style="yellow"))
    return Group(*lines)


def _where(citation: Citation) -> str:
    """Return the cited place in a document, or the cited calculation, knowledge graph call or model."""
    reference = citation.get("reference", "")
    if not citation["document"]:
        return f"{_CITED.get(citation.get('kind', ''), 'source')}: {reference}"
    characters = f"characters {citation['start']}–{citation['end']}"
    parts = reference, citation["document"], citation.get("location", characters)
    return f"{citation['title']} ({', '.join(part for part in parts if part)})"


def graph_view(graph: Graph) -> RenderableType:
    """Return a question's graph, one line per edge with its passages."""
    names = {node["id"]: node["name"] for node in graph["nodes"]}
    lines = [
        Text(
            f"graph: {counted(len(graph['nodes']), 'entity', 'entities')}, {counted(len(graph['edges']), 'relation')}",
            style="dim",
        )
    ]
    for edge in graph["edges"]:
        subject, object = (names.get(edge[end], edge[end]) for end in ("subject", "object"))
        where = (f"  [{', '.join(edge['passages'])}]", "dim")
        lines.append(Text.assemble(subject, (f" – {edge['predicate']} → ", "cyan"), object, where))
    return Group(*lines)


def cost_table(cost: Cost, seconds: float | None = None) -> Listing:
    """Return a table of calls, tokens and model seconds by node and in total, and the duration of the run."""
    numbered = ("calls", "prompt tokens", "completion tokens", "model seconds")
    table = Listing("node", *numbered, right=numbered)
    for node, part in cost["nodes"].items():
        numbers = (part["calls"], part["prompt_tokens"], part["completion_tokens"])
        table.add_row(node, *(f"{number:,}" for number in numbers), f"{part['model_seconds']:.1f}")
    total = (cost["calls"], cost["prompt_tokens"], cost["completion_tokens"])
    table.add_row("all", *(f"{number:,}" for number in total), f"{cost['model_seconds']:.1f}", style="bold")
    if seconds is not None:
        table.add_row("took", *[""] * 3, f"{seconds:.1f} s", style="dim")
    return table
