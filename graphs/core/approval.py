"""Approval by the person: a run waits until its plan, columns or outline is approved, edited or rejected.

Request and reply have the shape of LangChain's human-in-the-loop middleware, which agent-chat-ui and Agent Inbox draw
and fill in: https://docs.langchain.com/oss/python/langchain/human-in-the-loop. What is approved is one list of JSON
objects, under one name: `{"steps": [...]}`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from langgraph.types import interrupt
from pydantic import ValidationError

from sleuth.graphs.core.context import parse_json

T = TypeVar("T")

Decision = Literal["", "approve", "edit", "reject"]


@dataclass(frozen=True, kw_only=True)
class AwaitsApproval:
    """Fields of the state of a run that waits for an approval; a base before the state of the run."""

    decision: Decision = ""
    """The person's decision."""
    remark: str = ""
    """The person's remark, or why their reply could not be used."""


def ask_approval(
    action: str,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    about: str,
    *,
    remark: str,
    read: Callable[[list[Any]], T],
) -> tuple[Decision, T | None, str]:
    """Ask the person to approve an action on a named list, which they may edit, and wait for the reply.

    Args:
        action: what happens after an approval, as a name.
        name: the name of the list.
        rows: the list.
        about: what the person reads.
        remark: why their last reply could not be used; empty at first.
        read: parses an edited list, which may have been sent as JSON text; raises TypeError or ValueError.

    Returns:
        The decision, empty if the reply cannot be used; the edited list; the person's remark, or why it cannot.
    """
    about = f"{remark}\n\n{about}" if remark else about
    shown = {"name": action, "args": {name: [dict(row) for row in rows]}, "description": about}
    allowed = {"action_name": action, "allowed_decisions": ["approve", "edit", "reject"]}
    reply = interrupt({"action_requests": [shown], "review_configs": [allowed]})
    try:
        (decision,) = reply["decisions"]
        match decision["type"]:
            case "approve":
                return "approve", None, ""
            case "reject":
                return "reject", None, str(decision.get("message") or "")
            case "edit":
                (edited,) = map(parse_json, decision["edited_action"]["args"].values())
                if not isinstance(edited, list):
                    raise TypeError("it must be a list")
                return "edit", read(edited), ""
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
        return "", None, f"The last reply could not be used ({why})."
    return "", None, "The last reply could not be used: it must approve, edit or reject."


def parse_typed_decision(text: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a typed reply to a request (approve, reject, or another list) as `{"decisions": [...]}`."""
    word = text.strip().casefold()
    if word in ("approve", "reject"):
        return {"decisions": [{"type": word}]}
    (shown,) = asked["action_requests"]
    edited = {"name": shown["name"], "args": dict.fromkeys(shown["args"], text)}
    return {"decisions": [{"type": "edit", "edited_action": edited}]}


def describe_request(asked: Mapping[str, Any]) -> str:
    """Return the request to the person as a text."""
    (shown,) = asked["action_requests"]
    ((name, rows),) = shown["args"].items()
    listed = json.dumps(rows, ensure_ascii=False, indent=1)
    return f"{shown['description']}\n\n{listed}\n\nReply approve, reject, or with other {name} as such a list."
