"""Errors of operations in the words of the command line: commands and options in place of operations and arguments.

Operations are called by agents, programs and people alike; their errors name other operations. Who types a command is
told which command to run instead. `call` is left out: its user typed an operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

COMMANDS: Mapping[str, str] = {
    "add_admission_rule": "rules add",
    "add_dependency": "depend",
    "adopt_attempt": "adopt",
    "allow_agent": "allowlist add",
    "approve_many": "approve",
    "assign_agents": "move",
    "cancel_task": "cancel",
    "connection_instructions": "connect",
    "create_plan": "plan",
    "create_project": "projects add",
    "create_session": "sessions add",
    "create_team": "teams add",
    "create_worktree": "worktrees create",
    "delete_agent": "agents delete",
    "delete_context": "contexts delete",
    "delete_project": "projects delete",
    "delete_session": "sessions delete",
    "delete_team": "teams delete",
    "disallow_agent": "allowlist remove",
    "discard_worktree": "discard",
    "enlist_worker": "worker",
    "export_plan": "export-plan",
    "get_agent": "agent",
    "get_agent_history": "history",
    "get_agent_process_info": "ps",
    "get_approval": "approvals",
    "get_attempt_diff": "task",
    "get_confinement": "doctor",
    "get_context": "contexts show",
    "get_managed_agents": "ps",
    "get_performance": "performance",
    "get_persona": "personas show",
    "get_personas": "personas",
    "get_task": "task",
    "get_task_graph": "graph",
    "get_task_logs": "task",
    "get_worktree_diff": "worktrees diff",
    "get_worktree_status": "worktrees",
    "import_records": "import",
    "integrate_worktree": "integrate",
    "issue_token": "token",
    "list_admission_rules": "rules",
    "list_agent_tools": "tools",
    "list_agents": "agents",
    "list_allowlist": "allowlist",
    "list_approvals": "approvals",
    "list_closed_worktrees": "worktrees --all",
    "list_conflicts": "worktrees conflicts",
    "list_events": "events",
    "list_newest_events": "events",
    "list_persona_versions": "personas versions",
    "list_plans": "call list_plans",
    "list_profiles": "profiles",
    "list_projects": "projects",
    "list_sessions": "sessions",
    "list_tasks": "tasks",
    "list_teams": "teams",
    "prune_worktrees": "worktrees prune",
    "reassign_task": "assign",
    "registration_status": "call registration_status",
    "reject_many": "reject",
    "remove_admission_rule": "rules remove",
    "remove_dependency": "depend --remove",
    "resolve_worktree": "worktrees resolve",
    "restart_agent": "restart",
    "restore_agent": "agents restore",
    "restore_context": "contexts restore",
    "restore_project": "projects restore",
    "restore_session": "sessions restore",
    "restore_team": "teams restore",
    "retry_task": "retry",
    "revoke_agent": "revoke",
    "save_persona": "personas save",
    "set_priority": "priority",
    "spawn_agent": "spawn",
    "terminate_agent": "terminate",
    "update_agent": "grant",
    "update_agent_tool": "tools edit",
    "update_context": "contexts edit",
    "update_project": "projects edit",
    "update_session": "sessions edit",
    "update_team": "teams edit",
    "update_worktree": "worktrees update",
}
"""The commands that run an operation."""

_Words = str | Callable[[re.Match[str]], str]
_PHRASES: tuple[tuple[re.Pattern[str], _Words], ...] = (
    (re.compile(r"create_worktree with name=.* and branch_name=.* \((.*) does both\)"), r"\1 does both"),
    (re.compile(r"\bcall with update=true\b"), "give --update"),
    (re.compile(r"\b(despite_gates|force|deleted)=true\b"), lambda found: f"--{found[1].replace('_', '-')}"),
    (re.compile(r"\bwith step=start\b"), "with `{program} worktrees resolve`"),
    (re.compile(r"\bGET /api/ops lists those you may call\b"), "docs/reference.md lists them"),
)
_QUOTED_OR_NAME = re.compile(r"`([a-z]+(?:_[a-z]+)+)`|\b([a-z]+(?:_[a-z]+)+)\b(?!=)")


def in_commands(message: str, program: str = "workbench") -> str:
    """A message of an operation, with commands in place of the operations and arguments that it names."""
    for pattern, words in _PHRASES:
        message = pattern.sub(words, message)
    message = message.replace("{program}", program)
    return _QUOTED_OR_NAME.sub(lambda found: _command(found, program), message)


def _command(found: re.Match[str], program: str) -> str:
    name = found[1] or found[2]
    command = COMMANDS.get(name)
    return f"`{program} {command}`" if command else found[0]
