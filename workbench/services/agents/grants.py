"""Grants: an agent's id, name, session, team, worktree, persona, role, tool, access level, expiry and definition.

Approvals, admission rules and later changes take the same keys: an absent key leaves the value unchanged, null
clears it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, ValidationError

from workbench.errors import BadInput, Conflict, Hint, NotFound
from workbench.model import SECOND, Access, GrantedAccess, Moment, Role, SelfTools, Wire, iso
from workbench.ops import Ctx, first_problems, problems_of
from workbench.present.inert import inert_line
from workbench.rules import access
from workbench.rules.definitions.names import is_id
from workbench.services.access.personas import require_persona
from workbench.services.spaces.sessions import require_session
from workbench.services.spaces.teams import require_team
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

CHOICES = (
    "agent_id, name, session_id, team_id, worktree, persona_id, role, tool, access_level, expires_at (ISO 8601) or "
    "expires_in_seconds, definition (the agent definition it has), self_tools (off, read, write: what it may do with "
    "its own definition), definitions (true: a planner may manage all agent definitions), and tools (a list of MCP "
    "servers, agents of the KOI network, tools, `notebook` for the functions of notebooks, `network` for all of "
    "other nodes, or `*`: what of list_tools it may call; `update_traits` lets it change its own profile on the KOI "
    "network); omitted keys stay unchanged, null clears a value."
)


ALL_TOOLS = "*"
ToolRef = Annotated[str, Field(min_length=1, max_length=100)]
"""The name of a server or a tool of this project, ``notebook``, ``network``, ``network:AGENT`` or ``*``."""


class Grant(Wire):
    """The operator's choices for an agent."""

    agent_id: str | None = None
    name: str | None = Field(None, min_length=1, max_length=100)
    session_id: str | None = None
    team_id: str | None = None
    worktree: str | None = None
    persona_id: str | None = None
    role: Role | None = None
    tool: GrantedAccess | None = None
    access_level: Access | None = None
    expires_at: Moment | None = None
    expires_in_seconds: float | None = Field(None, gt=0, le=3.2e9)
    definition: str | None = None
    self_tools: SelfTools | None = None
    definitions: bool | None = None
    tools: list[ToolRef] | None = Field(None, max_length=200)


def parse(choices: Mapping[str, Any]) -> Grant:
    """Parse choices into a grant, whose `model_fields_set` has only the given keys.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``; `details.problems` names field and reason.
    """
    try:
        return Grant.model_validate(dict(choices))
    except ValidationError as error:
        problems = problems_of(error)
        raise BadInput(
            "INVALID_ARGUMENTS", f"{first_problems(problems)}. Valid choices: {CHOICES}", problems=problems
        ) from None


async def require_tools(ctx: Ctx, grant: Grant, held: Collection[str] = ()) -> None:
    """Refuse a grant of tools that there are not.

    Args:
        held: the words that are granted already, which may be of tools that are gone.

    Raises:
        NotFound: ``UNKNOWN_TOOL``.
    """
    await ctx.require_tools(ctx, set(grant.tools or ()).difference(held))


def nothing_chosen() -> BadInput:
    """The error for a change without choices."""
    return BadInput("INVALID_ARGUMENTS", f"No changes were given. Valid choices: {CHOICES}", problems=[])


def choice_refused(field: str, why: str) -> BadInput:
    """The error for a choice that cannot be made here."""
    return BadInput("INVALID_ARGUMENTS", f"{field}: {why}", problems=[{"field": field, "reason": why}])


def apply(tx: Tx, agent: Row, grant: Grant) -> dict[str, Any]:
    """Apply a grant to an agent's row; the changed columns with their new values (times as ISO 8601).

    Raises:
        BadInput: ``BAD_AGENT_ID``. Conflict: ``AGENT_ID_TAKEN``, ``TEAM_ELSEWHERE``.
        NotFound: ``PERSONA_NOT_FOUND``, ``SESSION_NOT_FOUND``, ``TEAM_NOT_FOUND``, ``WORKTREE_NOT_FOUND``,
            ``DEFINITION_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``, ``AMBIGUOUS_TARGET``.
        Conflict: ``WORKTREE_CLOSED``, ``WORKTREE_FIXED``.
    """
    values = {column: agent[column] for column in _COLUMNS} | _resolve(tx, agent, grant)
    changed = {column: value for column, value in values.items() if value != agent[column]}
    if changed:
        tx.run(SQL.grant, values | {"id": agent["id"], "expired": int(_is_over(values["expires_at"], tx.now))})
        if "assigned_agent_id" in changed and not agent["assigned_agent_id"].startswith("pending_"):
            tx.run(SQL.remember_id, agent_id=agent["assigned_agent_id"], id=agent["id"])
    if changed.get("expires_at"):
        changed["expires_at"] = iso(changed["expires_at"])
    return changed


def before(agent: Row, changed: Mapping[str, Any]) -> dict[str, Any]:
    """The values of changed columns before the change, from the agent's row then (times as ISO 8601)."""
    values = {column: agent[column] for column in changed}
    if values.get("expires_at"):
        values["expires_at"] = iso(values["expires_at"])
    return values


def check(tx: Reader, grant: Grant) -> None:
    """Refuse a grant that names a persona, session or team that does not exist.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``, ``SESSION_NOT_FOUND``, ``TEAM_NOT_FOUND``, ``WORKTREE_NOT_FOUND``,
            ``DEFINITION_NOT_FOUND``.
        Conflict: ``TEAM_ELSEWHERE``, ``WORKTREE_CLOSED``. BadInput: ``AMBIGUOUS_NAME``, ``AMBIGUOUS_TARGET``.
    """
    nobody = dict.fromkeys(_COLUMNS) | {"id": None}
    _resolve(tx, nobody, grant)


_COLUMNS = (
    "assigned_agent_id",
    "name",
    "session_id",
    "team_id",
    "assigned_worktree",
    "persona_id",
    "role",
    "tool",
    "access_level",
    "expires_at",
    "definition_id",
    "self_tools",
    "may_define",
    "tools",
)
_COLUMN_CHOICES = ("name", "role", "tool", "access_level", "self_tools")
"""The choices that are columns under the same name."""


def _resolve(tx: Reader, agent: Row, grant: Grant) -> dict[str, Any]:
    choices = {name: getattr(grant, name) for name in grant.model_fields_set}
    columns = {name: choices[name] for name in _COLUMN_CHOICES if choices.get(name)}
    if choices.get("agent_id"):
        columns["assigned_agent_id"] = _free(tx, agent, choices["agent_id"])
    if "persona_id" in choices:
        persona = require_persona(tx, choices["persona_id"]) if choices["persona_id"] else None
        columns["persona_id"] = persona.id if persona else None
    if "definition" in choices:
        columns["definition_id"] = _definition(tx, choices["definition"]) if choices["definition"] else None
    if "definitions" in choices:
        columns["may_define"] = int(choices["definitions"] or False)
    if "tools" in choices:
        columns["tools"] = json.dumps(sorted(set(choices["tools"] or ())))
    if "worktree" in choices:
        columns["assigned_worktree"] = _worktree(tx, agent, choices["worktree"])
    if {"session_id", "team_id"} & choices.keys():
        columns |= _place(tx, agent, choices)
    if {"expires_at", "expires_in_seconds"} & choices.keys():
        columns["expires_at"] = _until(tx, choices.get("expires_at"), choices.get("expires_in_seconds"))
    return columns


def _free(tx: Reader, agent: Row, agent_id: str) -> str:
    if agent_id == agent["assigned_agent_id"] and not agent_id.startswith("pending_"):
        return agent_id  # an imported one need not follow the rule for new ids
    holders = tx.all(SQL.holders, agent_id=access.check_agent_id(agent_id))
    other = next((row for row in holders if row["id"] != agent["id"]), None)
    if other is not None:
        note = " (of a deleted agent)" if other["deleted_at"] is not None else ""
        note = f" (formerly of {other['now']})" if other["now"] else note
        raise Conflict("AGENT_ID_TAKEN", f"Agent ID '{other['agent_id']}' already exists{note}. Choose another.")
    return agent_id


def _definition(tx: Reader, wanted: str) -> str:
    """The id of the only definition with a path, an id or a name; see `Registry.find`."""
    rows = tx.all(SQL.definition, wanted=wanted, id=wanted if is_id(wanted) else None)
    found = next(([row] for row in rows if row["path"] == wanted), rows)
    if len(found) > 1:
        paths = [row["path"] for row in found]
        text = f"{inert_line(wanted)} means {len(paths)} agents. Name one by its path: {', '.join(paths)}."
        raise BadInput("AMBIGUOUS_TARGET", text, candidates=paths)
    if not found:
        raise NotFound("DEFINITION_NOT_FOUND", f"There is no agent definition {wanted!r}.", Hint("agent_list"))
    return str(found[0]["id"])


def _worktree(tx: Reader, agent: Row, name: str | None) -> str | None:
    """The worktree that an agent is to work in: an active one. Those that Workbench started keep theirs."""
    if tx.one(SQL.spawned, id=agent["id"]) and name != agent["assigned_worktree"]:
        raise Conflict(
            "WORKTREE_FIXED", f"Workbench started {agent['assigned_agent_id']} in its worktree. Spawn another agent."
        )
    if name is None:
        return None
    found = tx.one(SQL.worktree, name=name)
    if found is None:
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no worktree {name!r}.", Hint("get_worktree_status"))
    if found["status"] != "active":
        raise Conflict("WORKTREE_CLOSED", f"The worktree {name} is {found['status']}. Choose another.")
    return name


def _place(tx: Reader, agent: Row, choices: Mapping[str, Any]) -> dict[str, Any]:
    """A matching session and team: members of a team that is in a session are in that session."""
    session = agent["session_id"]
    if "session_id" in choices:
        session = require_session(tx, choices["session_id"])["id"] if choices["session_id"] else None
    team = require_team(tx, choices["team_id"]) if choices.get("team_id") else None
    if team is None:
        team_id = agent["team_id"] if "team_id" not in choices and session == agent["session_id"] else None
        return {"session_id": session, "team_id": team_id}
    if team["session_id"] is None or team["session_id"] == session:
        return {"session_id": session, "team_id": team["id"]}
    if choices.get("session_id"):
        raise Conflict(
            "TEAM_ELSEWHERE", f"The team {team['name']} is in another session. Move it, or omit one of them."
        )
    return {"session_id": team["session_id"], "team_id": team["id"]}


def _until(tx: Reader, at: datetime | None, seconds: float | None) -> int | None:
    if seconds is not None:
        return tx.now + int(seconds * SECOND)
    return int(at.timestamp() * SECOND) if at else None


def _is_over(at: int | None, now: int) -> bool:
    return at is not None and at <= now
