"""How completions come in: whole, or read while they are written where somebody listens; broken ones are no replies."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import openai

from sleuth.agents.faults import Malformed
from sleuth.agents.model import Listener
from sleuth.agents.streams import gather, is_stream

CALL_HEADER = "X-Sleuth-Call"
"""Names the logical call: the same however often it is sent."""


class _Response(Protocol):
    """What is needed of the HTTP library's response, whichever library the client is built on."""

    status_code: int

    def json(self) -> object: ...


class Replies(openai.DefaultAsyncHttpxClient):
    """An HTTP client that takes a broken completion for a broken connection: it is asked for again, a few times.

    A stream is put together here, so that whoever asked sees the same response, fault or retry as without one.
    """

    def __init__(self) -> None:
        """Reads certificates."""
        super().__init__()
        self._listeners: dict[str, Listener] = {}

    @contextmanager
    def told_to(self, listener: Listener | None, call_id: str) -> Iterator[None]:
        """Has the replies to a call told as they come, as long as the block lasts."""
        if listener is not None:
            self._listeners[call_id] = listener
        try:
            yield
        finally:
            self._listeners.pop(call_id, None)

    async def send(self, request: Any, **options: Any) -> Any:  # noqa: ANN401 - as the HTTP library has it
        """Sends a request; raises Malformed for a completion that is none."""
        listener = self._listeners.get(request.headers.get(CALL_HEADER, ""))
        how = {**options, "stream": True} if listener else options
        response = await _whole(await super().send(request, **how), listener)
        if response.status_code == 200:
            check(response)
        return response


async def _whole(response: Any, listener: Listener | None) -> Any:  # noqa: ANN401 - as the HTTP library has it
    """The response once it is whole. Whatever breaks it off takes its words back and closes the connection."""
    whole = None
    try:
        if response.status_code != 200 or not is_stream(response.headers):
            await response.aread()
            return response
        status, body = await gather(response.aiter_bytes(), listener.delta if listener else _unheard)
        whole = type(response)(status, json=body, request=response.request)
        return whole
    finally:
        await response.aclose()
        if listener and (whole is None or whole.status_code != 200):
            listener.reset()


def _unheard(_text: str) -> None:
    """For a server that streams although it was not asked to."""


def check(response: _Response) -> None:
    """Raises Malformed for a response that holds no completion."""
    try:
        body = response.json()
    except ValueError as error:
        raise Malformed("its body is not JSON") from error
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices:
        raise Malformed("it has no choices")
    if not isinstance(choices[0], dict) or not isinstance(choices[0].get("message"), dict):
        raise Malformed("its first choice has no message")
