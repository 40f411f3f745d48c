"""The WebSocket protocol of spec 1 as data: parsing frames, and every reply that the spec defines.

A frame is `[agent, action, data]`. Older clients send objects, `{"type": "announce", …}` and
`{"type": "request_contexts", …}`, which are converted to frames. No socket and no `await` here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from workbench.errors import BadInput, Refused, Unauthenticated, WorkbenchError
from workbench.model import FeedEvent
from workbench.rules import access
from workbench.rules.wire import json_safety

TOOLS = ("register", "read", "write")
LEGACY = ("announce", "request_contexts")
CLAIMS = {
    **dict.fromkeys(("announce", "read", "write", "request_contexts"), ("agent_id",)),
    "registration_status": ("token",),
}
"""The fields by which an action other than `authenticate` claims an identity."""

TOOL_MESSAGES = {"tool.started": "tool_start", "tool.completed": "tool_complete"}
"""The messages of spec 4 for events."""

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of a client."""

    agent: str
    action: str
    data: dict[str, Any]
    request_id: Any = None

    @property
    def original(self) -> Message:
        """The form in which unknown actions are echoed."""
        return {"agent": self.agent, "action": self.action, "data": self.data}

    @property
    def claims(self) -> bool:
        """Whether it claims an identity by an id or a token; failed claims are counted."""
        claimed = CLAIMS.get(self.action, ())
        return self.action == "authenticate" or any(self.data.get(name) for name in claimed)


def parse(text: str, client_id: str = "") -> Frame:
    """Parse `[agent, action, data]`, or an object of an older client; `request_id` is removed from the data.

    Args:
        client_id: the agent if an object names none.

    Raises:
        BadInput: ``BAD_MESSAGE``.
    """
    try:
        message = json_safety.decode(text)
    except ValueError as error:
        raise _bad(str(error)) from None
    if isinstance(message, dict):
        message = _converted(message, client_id)
    if not isinstance(message, list) or len(message) != 3:
        raise _bad("it is not an array of three elements")
    agent, action, data = message
    if not isinstance(agent, str) or not isinstance(action, str):
        raise _bad("agent and action must be strings")
    if not isinstance(data, dict):
        raise _bad("data must be an object")
    return Frame(agent, action, data, data.pop("request_id", None))


def _converted(message: Message, client_id: str) -> list[Any]:
    action = message.get("type")
    if action not in LEGACY:
        raise _bad("it is not an array of three elements")
    if action == "announce" and not message.get("agent_id"):
        raise _bad("announce needs an agent_id")
    return [message.get("agent_id", client_id), action, {k: v for k, v in message.items() if k != "type"}]


def _bad(why: str) -> BadInput:
    return BadInput("BAD_MESSAGE", f"Send [agent, action, data] as JSON text: {why}.")


def reply(message: Message, request_id: Any) -> Message:
    """Add the id of the request to a reply, if the request had one."""
    return message if request_id is None else {**message, "request_id": request_id}


def prompt() -> Message:
    """The first message to a client."""
    return {
        "type": "tool_selection_prompt",
        "available_tools": list(TOOLS),
        "message": "Please select a tool to continue: register (new agent), read (read-only access), "
        "write (read-write access)",
    }


def agent_id_required(client_id: str, tool: str) -> Message:
    """The answer to selecting read or write."""
    return {
        "type": "agent_id_required",
        "message": f"To use '{tool}' tool, provide your assigned agent_id",
        "expected_format": json.dumps(
            [client_id, "authenticate", {"agent_id": "your_assigned_id", "token": "your_token"}], ensure_ascii=False
        ),
    }


def registration_success(result: Mapping[str, Any]) -> Message:
    """The answer to a registration; the only message that carries the token."""
    return {"type": "registration_success", **result}


def decision(state: Mapping[str, Any], admitted: bool) -> Message:
    """The message to a waiting agent once the operator has decided."""
    if not admitted:
        return {"type": "registration_rejected", "reason": state["reason"], **_known(access.rejected(state["reason"]))}
    return {"type": "agent_assigned", **{key: state[key] for key in ("agent_id", "session_id", "tool")}}


def new_pending_agent(agent: Mapping[str, Any]) -> Message:
    """The message to operators about an agent that waits for a decision."""
    return {"type": "new_pending_agent", **{key: agent[key] for key in ("agent_id", "name", "connection_id")}}


def authentication_success(agent_id: str, agent_name: str, tool: str) -> Message:
    """The answer to a successful authentication: the connection is now bound to an agent."""
    return {
        "type": "authentication_success",
        "agent_id": agent_id,
        "agent_name": agent_name,
        "tool": tool,
        "message": f"Authentication successful. You can now use {tool} operations.",
    }


def response(action: str, data: Mapping[str, Any]) -> Message:
    """The answer to an operation. As the spec says, `read` and `write` have their data at the top level."""
    if action in ("read", "write"):
        return {"type": f"{action}_response", **data}
    return {"type": f"{action}_response", "data": data}


# Replies to older clients.


def agent_status(agent_id: str, status: str) -> Message:
    """The message that precedes the answer to an announcement: `connected`, or `pending` for an unknown agent."""
    return {"type": "agent_status", "agent_id": agent_id, "status": status}


def announce_ack(agent_id: str, **registration: Any) -> Message:
    """The answer to an announcement; for an unknown agent, with its registration."""
    return {"type": "announce_ack", "agent_id": agent_id, **registration}


def contexts(agent_id: str, page: Mapping[str, Any]) -> Message:
    """The answer to `request_contexts`: the agent's own contexts, newest first."""
    return {"type": "contexts", "agent_id": agent_id, "results": page["data"]}


def event(found: FeedEvent, request_id: Any) -> str:
    """One event of a subscription as JSON text, with the id of the subscribing request."""
    origin = "" if request_id is None else f',"request_id":{to_json(request_id).decode()}'
    return f'{{"type":"event","data":{found.as_json}{origin}}}'


def tool_message(found: FeedEvent, request_id: Any) -> str | None:
    """An event of a tool as spec 4's `tool_start` or `tool_complete`, as JSON text; None for other events.

    `event_id` is the event's id, after which a subscription can continue.
    """
    kind = TOOL_MESSAGES.get(found.kind)
    if kind is None:
        return None
    return to_json(reply({"type": kind, **found.data, "event_id": found.id}, request_id)).decode()


def echo(frame: Frame) -> Message:
    """The answer to an unknown action."""
    return {"type": "echo", "original": frame.original}


def error(problem: WorkbenchError, action: str | None) -> Message:
    """The answer to a failed action; the connection stays open."""
    more = {key: value for key, value in problem.as_dict().items() if key in ("details", "hint") and value}
    return {"type": "error", **_known(problem), "action": action, **more}


def _known(problem: WorkbenchError) -> Message:
    return {"code": problem.code, "message": problem.message, "status": problem.status}


# Errors whose messages the spec defines.


def invalid_tool() -> BadInput:
    """The client selected an unknown tool."""
    return BadInput("INVALID_TOOL", "Invalid tool selection. Must be 'register', 'read', or 'write'")


def agent_id_missing() -> Unauthenticated:
    """The client reads or writes without having authenticated."""
    return Unauthenticated("TOKEN_REQUIRED", "agent_id required for read/write operations")


def not_admitted(rejection: str | None) -> Refused:
    """The agent is not admitted: its registration was rejected, for this reason, or is pending (None)."""
    return not_assigned() if rejection is None else access.rejected(rejection)


def not_assigned() -> Refused:
    """The agent's registration is pending."""
    return Refused("NOT_ASSIGNED", "Agent not yet assigned by human administrator")


def failed(what: str, problem: WorkbenchError) -> WorkbenchError:
    """The same error in the form of the spec: what failed, then why."""
    return problem.with_message(f"{what} failed: {problem.message}")
