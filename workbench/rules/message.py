"""The WebSocket protocol of spec 1 as data: text to frames, and every reply it prints.

A frame is `[agent, action, data]`. No socket and no `await` here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput, WorkbenchError
from workbench.rules import wire

TOOLS = ("register", "read", "write")

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


def parse(text: str) -> Frame:
    """Read `[agent, action, data]`; `data.request_id` is taken out.

    Raises:
        BadInput: ``BAD_MESSAGE``.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise _bad("it is not JSON") from None
    if not isinstance(message, list) or len(message) != 3:
        raise _bad("it is not an array of three elements")
    agent, action, data = message
    if not isinstance(agent, str) or not isinstance(action, str):
        raise _bad("agent and action are strings")
    if not isinstance(data, dict):
        raise _bad("data is an object")
    try:
        wire.check(message)
    except ValueError as error:
        raise _bad(str(error)) from None
    return Frame(agent, action, {k: v for k, v in data.items() if k != "request_id"}, data.get("request_id"))


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
        "expected_format": f'["{client_id}", "authenticate", '
        '{"agent_id": "your_assigned_id", "token": "your_token"}]',
    }


def registration_success(result: Mapping[str, Any]) -> Message:
    """The answer to a registration; the only message that ever carries the token."""
    return {"type": "registration_success", **result}


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
    """The answer to an operation."""
    return {"type": f"{action}_response", "data": data}


def echo(frame: Frame) -> Message:
    """The answer to an unknown action."""
    return {"type": "echo", "original": frame.original}


def error(problem: WorkbenchError, action: str | None) -> Message:
    """The answer to whatever went wrong; the connection lives on."""
    details = {"details": problem.details} if problem.details else {}
    return {"type": "error", "code": problem.code, "message": problem.message, "action": action, **details}
