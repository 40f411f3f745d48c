"""The catalogue of tools and the calls of them: `tools`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.call import parse_arguments
from workbench.cli.operations.declared import view
from workbench.cli.output import NounGroup, Shown, Text, drop_none, pass_client
from workbench.cli.tools.schemas import arguments_table, result_table
from workbench.errors import Unavailable
from workbench.present.inert import inert, inert_line
from workbench.present.tables import Table, TablePage, plain
from workbench.rules.tools.content import as_text, has_pictures


@root.group(cls=NounGroup)
def tools() -> None:
    """Tools that agents and models can call: list, show, call, calls, allow, cancel; servers."""


DESCRIPTION = 80
"""Characters of a description, of arguments and of a result in a table."""
NO_DECISION = "default"


@tools.command("list")
@click.argument("words", nargs=-1)
@click.option("--source", type=click.Choice(["local", "mcp"]), help="Only those that run here, or on MCP servers.")
@click.option("--server", metavar="NAME", help="Only those of this MCP server.", shell_complete=offers.tool_servers)
@click.option(
    "--kind", type=click.Choice(["operation", "function", "definition", "mcp", "trait"]), help="Only of this kind."
)
@pass_client
def list_tools(client: OperatorClient, words: tuple[str, ...], **only: str | None) -> Shown:
    """List the tools, or those whose name or description has all WORDS."""
    answer = client.call("list_tools", search=" ".join(words), **drop_none(**only))["tools"]
    rows = [
        [tool["name"], _origin(tool), _effect(tool), _line(tool["problem"] or tool["description"])] for tool in answer
    ]
    return Table(["tool", "from", "does", "description"], rows, "There is no such tool.", answer)


@view("ToolDetails")
def tool_page(tool: Mapping[str, Any]) -> TablePage:
    """The description of a tool, its arguments and its result."""
    problem = [f"It cannot be called now: {tool['problem']}."] if tool["problem"] else []
    about = "\n\n".join([tool["description"], *problem])
    return TablePage(
        [
            (f"{tool['name']} ({_origin(tool)}, {_effect(tool)})", Table([], [], "", lead=about)),
            ("Arguments", arguments_table(tool["parameters"])),
            ("Result", result_table(tool["result"])),
        ],
        dict(tool),
    )


@tools.command("call")
@click.argument("name", shell_complete=offers.tools)
@click.argument("arguments", nargs=-1)
@pass_client
def call_tool(client: OperatorClient, name: str, arguments: tuple[str, ...]) -> Shown:
    """Call a tool: `tools call NAME key=value …` or `tools call NAME '{"key": value}'`."""
    call = client.call("call_tool", name=name, arguments=parse_arguments(arguments))
    result = call["result"]
    if call["is_error"]:
        raise Unavailable("TOOL_ERROR", f"{name} failed: {result}", call_id=call["call_id"])
    return Text(inert(_read(result)), call)


def _read(result: Any) -> str:
    """A result for a terminal: pictures are named."""
    if isinstance(result, list) and has_pictures(result):
        return as_text(result)
    return result if isinstance(result, str) else json.dumps(result, indent=2, ensure_ascii=False)


@tools.command("calls")
@click.argument("call_id", metavar="[CALL]", required=False)
@click.option("--tool", "name", metavar="NAME", help="Only of this tool.", shell_complete=offers.tools)
@click.option("--server", metavar="NAME", help="Only of this MCP server.", shell_complete=offers.tool_servers)
@click.option("--agent", "agent_id", metavar="ID", help="Only of this agent.", shell_complete=offers.agents)
@click.option("--task", "task_id", type=int, metavar="ID", help="Only for this task.", shell_complete=offers.tasks)
@click.option(
    "--state",
    type=click.Choice(["open", "waiting", "running", "completed", "failed", "cancelled", "interrupted"]),
    help="Only in this state; open: not ended.",
)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most this many.")
@pass_client
def list_calls(client: OperatorClient, call_id: str | None, limit: int, **only: Any) -> Shown:
    """List the calls that were made, the newest first; or show one CALL whole."""
    if call_id is not None:
        return _call_text(client.call("get_tool_call", call_id=call_id))
    calls = client.call("list_tool_calls", limit=limit, **drop_none(**only))["calls"]
    keys = ("call_id", "tool_name", "caller", "requested_at")
    rows = [[*(call[key] for key in keys), _state(call), _duration(call), _line(call["tool_input"])] for call in calls]
    return Table(["call", "tool", "caller", "at", "state", "ms", "arguments"], rows, "No tool has been called.", calls)


@tools.command("allow")
@click.argument("name", required=False, shell_complete=offers.tools)
@click.argument("permission", type=click.Choice(["always", "ask", "never", NO_DECISION]), required=False)
@pass_client
def allow_tool(client: OperatorClient, name: str | None, permission: str | None) -> Shown:
    """Let agents and models call a tool always, after a question, or never; `default`: ask unless it only reads.

    Without arguments, list what is decided.
    """
    if name is None:
        return _permissions(client.call("list_tool_permissions")["permissions"])
    if permission is None:
        raise click.UsageError("Give always, ask, never or default.")
    chosen = None if permission == NO_DECISION else permission
    return _permissions(client.call("set_tool_permission", name=name, permission=chosen)["permissions"])


def _permissions(permissions: list[dict[str, Any]]) -> Table:
    keys = ("tool", "permission", "decided_by", "decided_at")
    rows = [[*(permission[key] for key in keys), _note(permission)] for permission in permissions]
    none = "Nothing is decided: tools that only read may be called, all others are asked for."
    return Table(["tool", "may be called", "decided by", "at", "note"], rows, none, permissions)


def _note(permission: Mapping[str, Any]) -> str:
    """Which calls a permission is about, if not all, and why it does not count now."""
    places = {"in the conversation": permission["conversation_id"], "for the task": permission["task_id"]}
    within = [f"{word} {place}" for word, place in places.items() if place is not None]
    if permission["arguments"] is not None:
        within.append(f"with {inert_line(json.dumps(permission['arguments'], ensure_ascii=False))}")
    only = f"only {' '.join(within)}" if within else ""
    return "; ".join(filter(None, [only, _caution(permission)]))


def _caution(permission: Mapping[str, Any]) -> str:
    if permission["changes"]:
        return f"asked for again: {', '.join(change['path'] for change in permission['changes'])} changed"
    return permission["problem"] or ""


def _call_text(call: Mapping[str, Any]) -> Text:
    offerer = f", {call['offerer_name']}" if call["offerer_name"] else ""
    has_images = isinstance(call["result"], list) and has_pictures(call["result"])
    lines = [
        f"{call['tool_name']} ({_origin(call)}{offerer}), called by {call['caller']} at {plain(call['requested_at'])}: "
        f"{_state(call)}",
        f"arguments: {json.dumps(call['arguments'], indent=2, ensure_ascii=False)}",
        f"result: {_read(call['result']) if has_images else json.dumps(call['result'], indent=2, ensure_ascii=False)}",
    ]
    return Text(inert("\n".join(lines)), dict(call))


def _origin(tool: Mapping[str, Any]) -> str:
    return f"{tool['kind']}: {tool['server']}" if tool["server"] else str(tool["kind"])


def _effect(tool: Mapping[str, Any]) -> str:
    if tool["read_only"]:
        return "reads"
    return "destroys" if tool["destructive"] else "writes"


def _state(call: Mapping[str, Any]) -> str:
    return f"{call['state']} ({call['error_code']})" if call["error_code"] else str(call["state"])


def _duration(call: Mapping[str, Any]) -> str:
    return "" if call["duration_ms"] is None else f"{call['duration_ms']:,}"


def _line(text: str) -> str:
    shown = inert_line(" ".join(text.split()))
    return shown if len(shown) <= DESCRIPTION else f"{shown[: DESCRIPTION - 1]}…"
