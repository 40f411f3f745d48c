"""The WebSocket protocol of spec 1 as data: text to frames, and every reply it prints.

A frame is `[agent, action, data]`; clients from before it send objects, `{"type": "announce", …}` and
`{"type": "request_contexts", …}`, which are read as such frames. No socket and no `await` here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput, Refused, Unauthenticated, WorkbenchError
from workbench.rules.wire import json_safety

TOOLS = ("register", "read", "write")
LEGACY = ("announce", "request_contexts")
CLAIMS = {
    **dict.fromkeys(("announce", "read", "write", "request_contexts"), ("agent_id",)),
    "registration_status": ("token",),
}
"""What of the data says who somebody is, besides that of `authenticate`."""

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
        """Whether it says who somebody is, by an id or a token: such guesses are counted."""
        claimed = CLAIMS.get(self.action, ())
        return self.action == "authenticate" or any(self.data.get(name) for name in claimed)


def parse(text: str, client_id: str = "") -> Frame:
    """Read `[agent, action, data]`, or an object as old clients send it; `request_id` is taken out of the data.

    Args:
        client_id: who speaks when an object does not say.

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
        raise _bad("agent and action are strings")
    if not isinstance(data, dict):
        raise _bad("data is an object")
    return Frame(agent, action, data, data.pop("request_id", None))


def _converted(message: Message, client_id: str) -> list[Any]:
    action = message.get("type")
    if action not in LEGACY:
        raise _bad("it is not an array of three elements")
    if action == "announce" and not message.get("agent_id"):
        raise _bad("who announces itself gives its agent_id")
    return [message.get("agent_id", client_id), action, {k: v for k, v in message.items() if k != "type"}]


def _bad(why: str) -> BadInput:
    return BadInput("BAD_MESSAGE", f"Send [agent, action, data] as JSON text: {why}.")


def reply(message: Message, request_id: Any) -> Message:
    """A reply that carries the id of what it answers, if it had one."""
    return message if request_id is None else {**message, "request_id": request_id}


def prompt() -> Message:
    """What a client is told first."""
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
    """The answer to a registration; the only message that ever carries the token."""
    return {"type": "registration_success", **result}


def decision(state: Mapping[str, Any], admitted: bool) -> Message:
    """What who waits is told once a person has decided."""
    if not admitted:
        return {"type": "registration_rejected", "reason": state["reason"]}
    return {"type": "agent_assigned", **{key: state[key] for key in ("agent_id", "session_id", "tool")}}


def new_pending_agent(agent: Mapping[str, Any]) -> Message:
    """What operators are told of an agent that waits for them."""
    return {"type": "new_pending_agent", **{key: agent[key] for key in ("agent_id", "name", "connection_id")}}


def authentication_success(agent_id: str, tool: str) -> Message:
    """The connection is bound to an agent from now on."""
    return {
        "type": "authentication_success",
        "agent_id": agent_id,
        "agent_name": agent_id,
        "tool": tool,
        "message": f"Authentication successful. You can now use {tool} operations.",
    }


def response(action: str, data: Mapping[str, Any]) -> Message:
    """The answer to an operation. Those that the spec prints, of read and write, have their data at the top."""
    if action in ("read", "write"):
        return {"type": f"{action}_response", **data}
    return {"type": f"{action}_response", "data": data}


def contexts(page: Mapping[str, Any]) -> Message:
    """The answer to an old client's `request_contexts`."""
    return {"type": "contexts", "contexts": page["data"], "next_cursor": page["next_cursor"]}


def event(found: Mapping[str, Any], request_id: Any) -> Message:
    """One event of a subscription; it carries the id of the request that subscribed."""
    return reply({"type": "event", "data": found}, request_id)


def echo(frame: Frame) -> Message:
    """The answer to an unknown action."""
    return {"type": "echo", "original": frame.original}


def error(problem: WorkbenchError, action: str | None) -> Message:
    """The answer to whatever went wrong; the connection lives on."""
    details = {"details": problem.details} if problem.details else {}
    known = {"code": problem.code, "message": problem.message, "status": problem.status}
    return {"type": "error", **known, "action": action, **details}


# The errors that the spec words.


def invalid_tool() -> BadInput:
    """Somebody selected a tool that is none."""
    return BadInput("INVALID_TOOL", "Invalid tool selection. Must be 'register', 'read', or 'write'")


def agent_id_missing() -> Unauthenticated:
    """Somebody reads or writes without having said who it is."""
    return Unauthenticated("TOKEN_REQUIRED", "agent_id required for read/write operations")


def not_assigned() -> Refused:
    """Somebody whose registration is undecided, or was turned down, wants more than to wait."""
    return Refused("NOT_ASSIGNED", "Agent not yet assigned by human administrator")


def failed(what: str, problem: WorkbenchError) -> WorkbenchError:
    """The same error, told as the spec tells it: what failed, then why."""
    return type(problem)(problem.code, f"{what} failed: {problem.message}", **problem.details)
