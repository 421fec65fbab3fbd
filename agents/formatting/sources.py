"""Passages as the model sees them: numbered from 1 and fenced, so that what they say stays data."""

import re
from dataclasses import dataclass

_FENCE = re.compile(r"<(?=\s*+(?:/\s*+)?source\b)", re.IGNORECASE)
# No line of a passage begins with a fence: see `unfenced`.
_NUMBERED = re.compile(
    r"^<source (\d+)>\n(.*)\n((?:(?!</?source ).*+\n)*?(?!</?source ).*+)\n</source \d+>$", re.MULTILINE
)
# Of ChatML, Llama, Mistral, Gemma, Phi, DeepSeek, Qwen and GLM; those of thoughts and of calls of tools, too.
_CHAT_MARKER = re.compile(
    r"<(?=[|｜]|</?SYS>>|/?(?:s|bos|eos|pad|unk|prompt_embeds|unused\d+)>|/?(?:start|end)_of_\w+>"
    r"|/?(?:think|thinking|thought|reasoning)>|/?(?:tool_calls?|tool_response|function(?:_calls?)?)[=>])"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|TOOL_CONTENT|THINK|ARGS|CALL_ID|gMASK)\])",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One passage to read: its title and its text."""

    title: str
    text: str


def number(sources: tuple[Source, ...], *, first: int = 1) -> str:
    """All sources in their order, each between its own numbered fences."""
    return "\n".join(
        f"<source {i}>\n{unfenced(' '.join(source.title.split()))}\n{unfenced(source.text.strip())}\n</source {i}>"
        for i, source in enumerate(sources, start=first)
    )


def in_prompt(text: str) -> list[tuple[int, Source]]:
    """The sources in a prompt with their numbers, as `number` has put them there."""
    return [(int(at), Source(title=title, text=body)) for at, title, body in _NUMBERED.findall(text)]


def unfenced(text: str) -> str:
    """The text, unable to close the fence around it or to open another."""
    return _FENCE.sub("‹", text)


def unmarked(text: str) -> str:
    """The text without the marks of chat templates and of embeddings among text; half characters become "?"."""
    return _CHAT_MARKER.sub(lambda mark: f"{mark.group()} ", text).encode("utf-8", "replace").decode("utf-8")
