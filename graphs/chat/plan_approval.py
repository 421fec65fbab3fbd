"""Approval of a plan by the person before it is carried out.

Request and reply have the shape of LangChain's human-in-the-loop middleware, which agent-chat-ui and Agent Inbox draw
and fill in: https://docs.langchain.com/oss/python/langchain/human-in-the-loop.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from sleuth.agents.roles.planning import Plan
from sleuth.graphs.core.context import parse_json
from sleuth.graphs.methods.par_rag.steps import Step, number_steps

ACTION = "carry_out_plan"

Decision = Literal["", "approve", "edit", "reject"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanDecision:
    """The decision about a plan; `remark` is the person's remark, or why their reply cannot be used."""

    decision: Decision
    plan: dict[str, Step] = field(default_factory=dict)
    remark: str = ""


def approval_request(question: str, plan: Mapping[str, Step], remark: str) -> dict[str, Any]:
    """Return the request to the person: the steps, which they may approve, edit or reject."""
    steps = [
        {"question": step["question"], "needs": [int(need) for need in step["needs"]], "action": step["action"]}
        for step in plan.values()
    ]
    about = f"The steps to answer: {question}\n`needs` are the numbers of the steps that one builds on, from 1."
    shown = {"name": ACTION, "args": {"steps": steps}, "description": f"{remark}\n\n{about}" if remark else about}
    allowed = {"action_name": ACTION, "allowed_decisions": ["approve", "edit", "reject"]}
    return {"action_requests": [shown], "review_configs": [allowed]}


def parse_decision(reply: Any, plan: Mapping[str, Step]) -> PlanDecision:  # noqa: ANN401 - any JSON of a client
    """Parse a reply `{"decisions": [{"type": "approve" | "edit" | "reject", ...}]}`; an invalid one has no decision."""
    try:
        (decision,) = reply["decisions"]
        match decision["type"]:
            case "approve":
                return PlanDecision(decision="approve", plan=dict(plan))
            case "reject":
                return PlanDecision(decision="reject", remark=str(decision.get("message") or ""))
            case "edit":
                return PlanDecision(decision="edit", plan=_edited(decision["edited_action"]["args"]["steps"]))
    except (KeyError, TypeError, ValueError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
        return PlanDecision(decision="", remark=f"The last reply could not be used ({why}).")
    return PlanDecision(
        decision="", remark="The last reply could not be used: it must approve, edit or reject the plan."
    )


def parse_typed_decision(text: str) -> dict[str, Any]:
    """Return a typed reply (approve, reject, or other steps) in the form of `parse_decision`."""
    word = text.strip().casefold()
    if word in ("approve", "reject"):
        return {"decisions": [{"type": word}]}
    return {"decisions": [{"type": "edit", "edited_action": {"name": ACTION, "args": {"steps": text}}}]}


def describe_request(asked: Mapping[str, Any]) -> str:
    """Return the request to the person as a text."""
    (shown,) = asked["action_requests"]
    steps = json.dumps(shown["args"]["steps"], ensure_ascii=False, indent=1)
    return f"{shown['description']}\n\n{steps}\n\nReply approve, reject, or with other steps as such a list."


def _edited(steps: Any) -> dict[str, Step]:  # noqa: ANN401 - as above
    """Parse steps as they were shown, or plain questions, each of which builds on the one before; also as JSON text."""
    listed = parse_json(steps)
    if not isinstance(listed, list):
        raise TypeError("steps must be a list")
    made = [
        {"question": step, "needs": [at] if at else []} if isinstance(step, str) else step
        for at, step in enumerate(listed)
    ]
    return number_steps(Plan.model_validate({"steps": made}).steps)
