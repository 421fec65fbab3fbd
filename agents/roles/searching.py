"""Role of models that were trained to search: they continue one transcript, and ask for a search with a tag.

Search-R1 (Jin et al., 2025), StepSearch (Wang et al., 2025) and CoRAG (Wang et al., 2025). The transcript is the
beginning of the reply: what the model has written, and after each search the passages between tags. No passage can
write a tag, so only the model can search or answer.
"""

import re
from dataclasses import dataclass
from typing import Literal

from sleuth.agents.formatting import Steps, escape_chat_markers, escape_line, format_steps
from sleuth.agents.model import Sampling
from sleuth.agents.role import Input, Role
from sleuth.agents.roles.planning import SearchResult

Format = Literal["search-r1", "stepsearch", "corag"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tags:
    """The names of a format's tags: around a query, around the passages found for it, and around the answer."""

    query: str = "search"
    passages: str = "information"
    answer: str = "answer"


TAGS: dict[Format, Tags] = {
    "search-r1": Tags(),
    "stepsearch": Tags(),
    "corag": Tags(query="subquery", passages="documents"),
}

_NAMES = "think|search|information|answer|subquery|subanswer|documents"
_TAG = re.compile(rf"<(?=\s*+(?:/\s*+)?(?:{_NAMES})\b)", re.IGNORECASE)
_PASSAGES = re.compile(r"</?(?:information|documents)>")
_DOC = re.compile(r"^(?=[^\S\n]*Doc \d+\(Title: )", re.MULTILINE)
_HEAD = re.compile(r"^Doc \d+\(Title: ", re.MULTILINE)
_EXACT_TAG = re.compile(rf"(</?(?:{_NAMES})>)")


class Transcript(Input):
    """The question, the steps of an earlier run, and what was written and found so far.

    `written` are the model's texts and `searches` the query of each, empty if it had none. A source's `search` is the
    number of its text, from 1. After the `last` search the model begins to answer.
    """

    question: str
    known: Steps
    written: tuple[str, ...]
    searches: tuple[str, ...]
    sources: tuple[SearchResult, ...]
    last: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A text of the model up to the end of its first query or answer; `action` is empty if it has neither."""

    text: str
    action: Literal["search", "answer", ""]
    content: str = ""


def parse_turn(text: str, tags: Tags, *, is_cut: bool) -> Turn:
    """Return what the model asks for with a text.

    Args:
        text: the text up to a stop string; servers may leave out the stop string, or continue after it.
        tags: the tags of its format.
        is_cut: the text reached its length limit, so a tag that is open at its end is no query and no answer.
    """
    text = re.split(rf"</?{tags.passages}>", text, maxsplit=1)[0]  # passages that the model makes up are dropped
    match = re.search(rf"<({tags.query}|{tags.answer})>(.*?)(</\1>|\Z)", text, re.DOTALL)
    if match is None or (is_cut and not match[3]) or (match[1] == tags.query and not match[2].strip()):
        return Turn(text=text.strip(), action="")
    name, content, closing = match.groups()
    action: Literal["search", "answer"] = "search" if name == tags.query else "answer"
    written = text[: match.end()] if closing else f"{text.rstrip()}</{name}>"
    return Turn(text=written.strip(), action=action, content=content.strip())


def _begin(input: Transcript, tags: Tags) -> str:
    """Return the transcript so far, in the layout of Search-R1's code."""
    parts: list[str] = []
    for at, (text, query) in enumerate(zip(input.written, input.searches, strict=True), start=1):
        sources = [source for source in input.sources if source.search == at]
        # Of the chat markers in the model's text, the tags of the formats are kept.
        parts += [part if odd % 2 else escape_chat_markers(part) for odd, part in enumerate(_EXACT_TAG.split(text))]
        parts.append(_results(sources, tags) if query else _correction(tags))
    return "".join([*parts, f"<{tags.answer}>" if input.last else ""])


def _results(sources: list[SearchResult], tags: Tags) -> str:
    lines = [
        f"Doc {at}(Title: {escape_line(source.title)}) {_DOC.sub('› ', source.text.strip())}"
        for at, source in enumerate(sources, start=1)
    ]
    # No passage can open or close a tag.
    text = escape_chat_markers(_TAG.sub("‹", "\n".join(lines) or "(nothing found)"))
    return f"\n\n<{tags.passages}>{text}</{tags.passages}>\n\n"


def parse_results(text: str) -> list[str]:
    """Return the passages in a transcript, each as its title, a closing bracket with a space, and its text."""
    blocks = [block for block in _PASSAGES.split(text) if _DOC.match(block.strip())]
    return [passage.strip() for block in blocks for passage in _HEAD.split(block)[1:]]


def _correction(tags: Tags) -> str:
    """Return the remark after a text without a query or an answer, as Search-R1 has one, in our words."""
    return (
        f"\nThat was neither a search nor an answer. A search needs its query between <{tags.query}> and "
        f"</{tags.query}>, an answer its text between <{tags.answer}> and </{tags.answer}>. Once more.\n"
    )


def _role(prompt: str, tags: Tags) -> Role[Transcript, str]:
    def render(input: Transcript) -> dict[str, str]:
        notes = f"\nAlready known:\n{format_steps(input.known)}" if input.known else ""
        return {"question": f"{input.question}{notes}"}

    stop = (f"</{tags.query}>", f"</{tags.answer}>")
    sampling = Sampling(max_tokens=512, stop=stop)
    return Role(prompt, Transcript, str, sampling, render=render, begun=lambda input: _begin(input, tags))


SEARCH_R1 = _role("searcher/search_r1", TAGS["search-r1"])
"""Continue a transcript with Search-R1's prompt (section 3.3, table 1)."""

STEP_SEARCH = _role("searcher/stepsearch", TAGS["stepsearch"])
"""Continue a transcript whose first thought is a plan."""

CORAG = _role("searcher/corag", TAGS["corag"])
"""Continue a transcript of sub-queries and sub-answers."""

ROLES: dict[Format, Role[Transcript, str]] = {"search-r1": SEARCH_R1, "stepsearch": STEP_SEARCH, "corag": CORAG}
"""The role of each format."""
