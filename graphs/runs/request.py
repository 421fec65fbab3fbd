"""The request for a run: command line, Python, HTTP and MCP build it, which checks it, and `RunService` takes it."""

from typing import Any, Self

from pydantic import SkipValidation, field_validator, model_validator

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import DEFAULT_METHOD, MethodSettings, RunParameters
from sleuth.graphs.core.method import CHAT, Method
from sleuth.graphs.registry import configure, runnable
from sleuth.tools.errors import UsageError
from sleuth.tools.search.retriever import check_unicode
from sleuth.tools.settings import Profile
from sleuth.tools.storage.filters import parse_filter

MAX_QUESTION = 20_000
"""Characters; longer questions are documents."""


class RunRequest(RunParameters):
    """A question with its method and options; or a message of a chat, or the reply that a run waits for.

    Without a `method`, the `default_method` runs; it also answers the questions of a new chat. `pages` (`PageText`) are
    searched instead of the collection, or `with_collection` in addition to it. `thread` is the id of the run, of the
    chat, or of the waiting run. `after` is the answer that the first message of a chat follows up on. `message_id` is
    that of a client which names its messages.

    Raises:
        UsageError: an empty or too long question, an unknown method, a setting that cannot be used, pages without
            text, or a filter that cannot be parsed.

    Example:
        >>> request = RunRequest(question="Who built the light?", method="par-rag", values={"coarse_k": 5})
        >>> thread = await runs.start(request)
    """

    question: str
    method: str | None = None
    default_method: str = DEFAULT_METHOD
    thread: str | None = None
    pages: SkipValidation[tuple[Any, ...]] = ()
    with_collection: bool = False
    after: SkipValidation[Answer | None] = None
    message_id: str = ""

    @field_validator("question")
    @classmethod
    def _check_question(cls, question: str) -> str:
        return check_question(question)

    @field_validator("where")
    @classmethod
    def _check_filter(cls, where: str) -> str:
        return where.strip() if where.strip() and parse_filter(where).terms else ""

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        if not (self.kind.name == CHAT and self.thread):  # a chat has settings that these are added to
            assert self.settings
        return self

    @property
    def kind(self) -> Method:
        """The method that runs."""
        return runnable(self.method or self.default_method)

    @property
    def settings(self) -> MethodSettings:
        """The settings of the method."""
        return configure(self.kind, self.values, self.profile)

    def resolved(self, *, default_method: str, profile: Profile) -> "RunRequest":
        """Return the request with its method and profile; raise UsageError if a default method lacks a setting."""
        about = {"method": self.method or default_method, "default_method": default_method, "profile": profile}
        resolved = self.model_copy(update=about)
        assert self.method or resolved.settings
        return resolved


def check_question(question: str) -> str:
    """Return the question without surrounding white space; raise UsageError if it is empty or too long."""
    stripped = question.strip()
    if not stripped:
        raise UsageError("The question is empty.")
    if len(stripped) > MAX_QUESTION:
        raise UsageError(
            f"The question has {len(stripped):,} characters, the most is {MAX_QUESTION:,}: "
            "put long material into a file, `sleuth ingest` it, and ask about it."
        )
    check_unicode(stripped)
    return stripped.replace("\x00", "")
