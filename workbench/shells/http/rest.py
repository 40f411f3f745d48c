"""The REST endpoints as data: the operation for each method and path, and how a request becomes its arguments.

There are two families with the same paths. Endpoints without a prefix are those of spec 1's server and return plain
JSON: a list as an array of rows (with the headers `X-Total-Count` and `X-Next-Cursor`), anything else as an object.
Those under `/api` return `{"success": true, "data": …}` with the operation's whole result, like `POST /api/ops/<name>`.
Both have the same form of errors.

For a new context, and for changes of an agent, the body as a whole is one argument; elsewhere the body's fields are the
arguments. Nothing is decided here: an endpoint is another name for an operation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput
from workbench.ops import Catalogue, Op

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class RestEndpoint:
    """One method of one path.

    Args:
        path: with the names of arguments in braces.
        rows: the field with the list, if the result is a page of one.
        body: the argument that is the whole body; None: the body's fields are the arguments.
    """

    method: str
    path: str
    op: str
    rows: str | None = None
    body: str | None = None

    def arguments(
        self, op: Op, path: Mapping[str, str], query: Iterable[tuple[str, str]], body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The operation's arguments. The path takes precedence over the body, and the body over the query string.

        Raises:
            BadInput: ``INVALID_ARGUMENTS``: an object in the query string is not JSON.
        """
        sent = {self.body: dict(body)} if self.body and body else body
        return {**from_query(op, query), **sent, **path}


ENDPOINTS = (
    RestEndpoint("GET", "/projects", "list_projects", rows="projects"),
    RestEndpoint("POST", "/projects", "create_project"),
    RestEndpoint("GET", "/projects/{project_id}", "get_project"),
    RestEndpoint("PATCH", "/projects/{project_id}", "update_project"),
    RestEndpoint("DELETE", "/projects/{project_id}", "delete_project"),
    RestEndpoint("POST", "/projects/{project_id}/restore", "restore_project"),
    RestEndpoint("GET", "/sessions", "list_sessions", rows="sessions"),
    RestEndpoint("POST", "/sessions", "create_session"),
    RestEndpoint("GET", "/sessions/{session_id}", "get_session"),
    RestEndpoint("PATCH", "/sessions/{session_id}", "update_session"),
    RestEndpoint("DELETE", "/sessions/{session_id}", "delete_session"),
    RestEndpoint("POST", "/sessions/{session_id}/restore", "restore_session"),
    RestEndpoint("GET", "/teams", "list_teams", rows="teams"),
    RestEndpoint("POST", "/teams", "create_team"),
    RestEndpoint("GET", "/teams/{team_id}", "get_team"),
    RestEndpoint("PATCH", "/teams/{team_id}", "update_team"),
    RestEndpoint("DELETE", "/teams/{team_id}", "delete_team"),
    RestEndpoint("POST", "/teams/{team_id}/move", "move_team"),
    RestEndpoint("POST", "/teams/{team_id}/restore", "restore_team"),
    RestEndpoint("GET", "/contexts", "read", rows="data"),
    RestEndpoint("POST", "/contexts", "write", body="content"),
    RestEndpoint("GET", "/contexts/{context_id}", "get_context"),
    RestEndpoint("PATCH", "/contexts/{context_id}", "update_context"),
    RestEndpoint("DELETE", "/contexts/{context_id}", "delete_context"),
    RestEndpoint("POST", "/contexts/{context_id}/restore", "restore_context"),
    RestEndpoint("GET", "/agents", "list_agents", rows="agents"),
    RestEndpoint("POST", "/agents", "register"),
    RestEndpoint("GET", "/agents/{agent_id}", "get_agent"),
    RestEndpoint("PATCH", "/agents/{agent_id}", "update_agent", body="changes"),
    RestEndpoint("DELETE", "/agents/{agent_id}", "delete_agent"),
    RestEndpoint("POST", "/agents/{agent_id}/restore", "restore_agent"),
    RestEndpoint("POST", "/agents/{agent_id}/token", "issue_token"),
    RestEndpoint("POST", "/agents/{agent_id}/revoke", "revoke_agent"),
    RestEndpoint("GET", "/agent-tools", "list_agent_tools", rows="agent_tools"),
    RestEndpoint("PATCH", "/agent-tools/{tool_id}", "update_agent_tool"),
    RestEndpoint("GET", "/approvals", "list_approvals", rows="approvals"),
    RestEndpoint("POST", "/approvals/{approval_id}/approve", "approve"),
    RestEndpoint("POST", "/approvals/{approval_id}/reject", "reject"),
    RestEndpoint("GET", "/performance", "get_performance"),
    RestEndpoint("GET", "/tools", "list_tools", rows="tools"),
    RestEndpoint("GET", "/tools/{name}", "get_tool"),
    RestEndpoint("POST", "/tools/{name}/call", "call_tool", body="arguments"),
    RestEndpoint("GET", "/tool-calls", "list_tool_calls", rows="calls"),
    RestEndpoint("GET", "/tool-calls/{call_id}", "get_tool_call"),
    RestEndpoint("POST", "/tool-calls/{call_id}/cancel", "cancel_tool_call"),
    RestEndpoint("GET", "/tool-permissions", "list_tool_permissions", rows="permissions"),
    RestEndpoint("PUT", "/tool-permissions/{name}", "set_tool_permission"),
    RestEndpoint("GET", "/conversations", "list_conversations", rows="conversations"),
    RestEndpoint("POST", "/conversations", "create_conversation"),
    RestEndpoint("GET", "/conversations/{conversation_id}", "get_conversation"),
    RestEndpoint("PATCH", "/conversations/{conversation_id}", "update_conversation"),
    RestEndpoint("DELETE", "/conversations/{conversation_id}", "delete_conversation"),
    RestEndpoint("GET", "/conversations/{conversation_id}/turns", "list_turns"),
    RestEndpoint("POST", "/conversations/{conversation_id}/turns", "ask"),
    RestEndpoint("GET", "/conversations/{conversation_id}/frames", "read_frames"),
    RestEndpoint("POST", "/conversations/{conversation_id}/stop", "stop_answer"),
    RestEndpoint("POST", "/conversations/{conversation_id}/retry", "retry_answer"),
    RestEndpoint("GET", "/conversations/{conversation_id}/export", "export_conversation"),
)


def by_path(catalogue: Catalogue) -> dict[str, dict[str, RestEndpoint]]:
    """The endpoints whose operation a catalogue has, by path and method."""
    found: dict[str, dict[str, RestEndpoint]] = {}
    for endpoint in ENDPOINTS:
        if endpoint.op in catalogue:
            found.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return found


def from_query(op: Op, query: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Arguments from a query string: lists by commas or repetition, objects as JSON, the rest as the schema allows.

    A value that fits no schema stays text; the operation's validation reports it.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    arguments: dict[str, Any] = {}
    for name, text in query:
        types = _types(op.input_schema, op.input_schema["properties"].get(name, {}))
        if "array" in types:
            arguments.setdefault(name, []).extend(text.split(","))
        elif "object" in types:
            arguments[name] = _object(op, name, text)
        else:
            arguments[name] = _scalar(types, text)
    return arguments


def _scalar(types: set[str], text: str) -> Any:
    """Convert integers and null. Validation reads booleans and fractions from text itself."""
    if "integer" in types and re.fullmatch(r"-?\d{1,19}", text):
        return int(text)
    return None if text == "null" and "null" in types and "string" not in types else text


def _types(whole: Schema, schema: Schema) -> set[str]:
    """The JSON types that a schema allows."""
    if "$ref" in schema:
        return _types(whole, whole["$defs"][schema["$ref"].rpartition("/")[2]])
    own = {schema["type"]} if "type" in schema else set()
    return own.union(*(_types(whole, option) for option in schema.get("anyOf", [])))


def _object(op: Op, name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        problems = [{"field": name, "reason": "It is not JSON"}]
        raise BadInput(
            "INVALID_ARGUMENTS", f"{op.name}: {name} must be an object, as JSON.", problems=problems
        ) from None
