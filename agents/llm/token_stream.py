"""The words of replies while they are written: told on the run's custom stream, kept nowhere, taken back at need.

A telling is {"node", "role", "call", "text"}; without `text` it takes back what was told of the call.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from langgraph.config import get_config, get_stream_writer

from sleuth.agents.model import Request
from sleuth.tools.text import sanitize


@dataclass(frozen=True, kw_only=True)
class Hearing:
    """Who may hear the replies of a run while they are written.

    `listening` is asked before each call. `again` is the superstep that an interrupted run goes on with: its calls may
    have been heard before, and begin anew.
    """

    listening: Callable[[], bool]
    again: int | None = None

    @contextmanager
    def of(self, request: Request, *, node: str) -> Iterator[Request]:
        """The request as it is to be sent, in its call's task; if no reply comes of it, its words are taken back."""
        speaker = _Speaker(node=node, role=request.role, call=request.call_id)
        if get_config()["metadata"]["langgraph_step"] == self.again:
            speaker.take_back()
        stands = False
        try:
            yield replace(request, listener=speaker) if self.listening() else request
            stands = True
        finally:
            if not stands:
                speaker.reset()

    def take_back(self, *, node: str, role: str, call: str) -> None:
        """Says that a call's words do not stand, although it has ended."""
        _Speaker(node=node, role=role, call=call).take_back()


class _Speaker:
    """Tells what is said in one call."""

    def __init__(self, *, node: str, role: str, call: str) -> None:
        self._about = {"node": node, "role": role, "call": call}
        self._write = get_stream_writer()
        self._said = False

    def delta(self, text: str) -> None:
        """Further words."""
        self._said = True
        self._write({**self._about, "text": sanitize(text)})

    def reset(self) -> None:
        """Takes back what was said, if anything was."""
        if self._said:
            self.take_back()

    def take_back(self) -> None:
        """Takes back what may have been said, also by a process before this one."""
        self._said = False
        self._write(self._about)
