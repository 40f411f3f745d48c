"""The options for what an agent is granted, shared by `approve`, `grant`, `move` and `rules add`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from workbench.cli.completion import offers
from workbench.cli.output import Fn, drop_none
from workbench.model import Access, GrantedAccess, Role, SelfTools
from workbench.present.tables import plain

NOTHING = "none"
"""Given as a session, team, worktree, persona or definition, it removes that."""
CLEARABLE = ("session_id", "team_id", "worktree", "persona_id", "definition", "tools")
_TOOLS = {"read": "read only", "write": "read and write"}
_OWN = {"off": "which it cannot read", "read": "which it can read", "write": "which it can change"}
_SEES = {
    "self_only": "sees its own data",
    "team_level": "sees its team's data",
    "session_level": "sees its session's data",
}
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
TOOLS_HELP = "What of the tools it may call: servers, agents, tools, `notebook`, `network`, or `*`, with commas"


def tool_names(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Names with commas between them, as a list."""
    return value if value in (None, NOTHING) else [name.strip() for name in str(value).split(",")]


class Expiry(click.ParamType[dict[str, Any]]):
    """Converts `30m`, `2h`, `7d`, `2w`, `never`, or a time in ISO 8601 to choices of a grant."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """See `click.ParamType.convert`."""
        if isinstance(value, dict):
            return value
        if value == "never":
            return {"expires_at": None}
        if duration := re.fullmatch(r"(\d{1,6})([smhdw])", value):
            return {"expires_in_seconds": int(duration[1]) * SECONDS[duration[2]]}
        if not re.match(r"\d{4}-\d\d-\d\d", value):
            self.fail(
                f"{value!r} is not a time. Use 30m, 2h, 7d, never, or a date such as 2030-01-31T18:00:00Z.", param, ctx
            )
        return {"expires_at": value}


_OPTIONS = {
    "session_id": click.option(
        "--session", "session_id", metavar="SESSION", help="Its session, or `none`.", shell_complete=offers.sessions
    ),
    "team_id": click.option(
        "--team", "team_id", metavar="TEAM", help="Its team, or `none`.", shell_complete=offers.teams
    ),
    "worktree": click.option(
        "--worktree",
        metavar="WORKTREE",
        help="The worktree it works in, or `none`; for agents that you start yourself.",
        shell_complete=offers.worktrees,
    ),
    "persona_id": click.option(
        "--persona", "persona_id", metavar="PERSONA", help="Its persona, or `none`.", shell_complete=offers.personas
    ),
    "role": click.option(
        "--role",
        type=click.Choice([role.value for role in Role]),
        help="A worker does tasks; a planner also creates them.",
    ),
    "tool": click.option(
        "--tool",
        type=click.Choice([tool.value for tool in GrantedAccess]),
        help="read, or write (which includes read).",
    ),
    "access_level": click.option(
        "--access",
        "access_level",
        type=click.Choice([access.value for access in Access]),
        help="What it sees: its own data, its team's, or its session's.",
    ),
    "definition": click.option(
        "--definition",
        metavar="DEFINITION",
        help="The definition it has, or `none`.",
        shell_complete=offers.definitions,
    ),
    "self_tools": click.option(
        "--self-tools",
        type=click.Choice([tools.value for tools in SelfTools]),
        help="What it may do with the rules and references of its own definition.",
    ),
    "definitions": click.option(
        "--definitions/--no-definitions", default=None, help="Let a planner create and change all definitions."
    ),
    "tools": click.option(
        "--tools",
        metavar="NAMES",
        callback=tool_names,
        help=f"{TOOLS_HELP}; or `none`.",
    ),
    "expires": click.option("--expires", type=Expiry(), help="When the grant ends: 30m, 2h, 7d, never, or a date."),
}


def grant_options(command: Fn) -> Fn:
    """Add every option of a grant to a command; `choices` reads them."""
    for option in reversed(_OPTIONS.values()):
        command = option(command)
    return command


def membership_options(command: Fn) -> Fn:
    """Add the options for an agent's session and team to a command."""
    return _OPTIONS["session_id"](_OPTIONS["team_id"](command))


def choices(options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Options as an operation takes them: an option that was not given is absent, `none` is null."""
    values = drop_none(**more, **options)
    expires: dict[str, Any] = values.pop("expires", {})
    plain = {key: None if key in CLEARABLE and value == NOTHING else value for key, value in values.items()}
    return plain | expires


def granted_text(granted: Mapping[str, Any]) -> str:
    """What an agent was granted, as `approve` returns it, in one line."""
    parts = [
        granted["role"],
        f"persona {granted['persona_id']}" if granted["persona_id"] else "no persona",
        _TOOLS[granted["tool"]],
        _SEES[granted["access_level"]],
        session_text(granted["session"]),
        f"team {granted['team']}" if granted["team"] else None,
        f"worktree {granted['worktree']}" if granted["worktree"] else None,
        f"definition {granted['definition']} ({_OWN[granted['self_tools']]})" if granted["definition"] else None,
        "manages definitions" if granted["definitions"] else None,
        f"tools {', '.join(granted['tools'])}" if granted["tools"] else None,
        f"until {plain(granted['expires_at'])}" if granted["expires_at"] else None,
    ]
    return ", ".join(filter(None, parts))


def session_text(session: Mapping[str, Any] | None) -> str:
    """The session that an agent is in, or would be in, with its project."""
    return f"in {session['project']} / {session['name']}" if session else "in no session"
