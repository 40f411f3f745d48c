"""Errors of operations in the words of the command line: commands and options in place of operations and arguments.

Operations are called by agents, programs and people alike; their errors name other operations. Who types a command is
told which command to run instead. `call` is left out: its user typed an operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from workbench.present.declared import commands_of_operations

HAND_WRITTEN: Mapping[str, str] = {
    "add_admission_rule": "rules add",
    "add_dependency": "depend",
    "agent_add_mcp_server": "define servers add",
    "agent_add_reference": "define references add",
    "agent_add_rule": "define rules add",
    "agent_add_tool": "define tools add",
    "agent_analytics": "define analytics",
    "agent_clone": "define clone",
    "agent_create": "define create",
    "agent_create_from_persona": "define from-persona",
    "agent_create_from_template": "define from-template",
    "agent_delete": "define delete",
    "agent_delete_mcp_server": "define servers delete",
    "agent_delete_reference": "define references delete",
    "agent_delete_rule": "define rules delete",
    "agent_delete_tool": "define tools delete",
    "agent_diff": "define diff",
    "agent_export": "define export",
    "agent_get_info": "define show",
    "agent_get_mcp_server": "define servers show",
    "agent_get_metadata": "define describe",
    "agent_get_provider_config": "define providers show",
    "agent_get_reference": "define references show",
    "agent_get_rule": "define rules show",
    "agent_get_schema": "define schema",
    "agent_get_settings": "define settings",
    "agent_get_system_prompt": "define prompt",
    "agent_get_tool": "define tools show",
    "agent_get_trust": "define trust",
    "agent_history": "define history",
    "agent_import": "define import",
    "agent_install_provider": "define providers install",
    "agent_list": "define",
    "agent_list_mcp_servers": "define servers",
    "agent_list_providers": "define providers",
    "agent_list_references": "define references",
    "agent_list_rules": "define rules",
    "agent_list_templates": "define templates",
    "agent_list_tools": "define tools",
    "agent_migrate": "define migrate",
    "agent_probe_mcp_server": "define servers probe",
    "agent_request_trust": "define trust --ask",
    "agent_revoke_trust": "define trust --revoke",
    "agent_set_setting": "define set",
    "agent_set_system_prompt": "define prompt",
    "agent_uninstall_provider": "define providers uninstall",
    "agent_update_mcp_server": "define servers update",
    "agent_update_metadata": "define describe",
    "agent_update_provider": "define providers update",
    "agent_update_reference": "define references update",
    "agent_update_rule": "define rules update",
    "agent_update_tool": "define tools update",
    "agent_validate": "define validate",
    "agent_validate_provider_config": "define providers check",
    "allow_agent": "allowlist add",
    "approve_many": "approve",
    "assign_agents": "move",
    "call_tool": "tools call",
    "cancel_task": "cancel",
    "connection_instructions": "connect",
    "create_plan": "plan",
    "create_worktree": "worktrees create",
    "delete_agent": "agents delete",
    "delete_conversation": "conversations delete",
    "delete_project": "projects delete",
    "delete_session": "sessions delete",
    "disallow_agent": "allowlist remove",
    "enlist_worker": "worker",
    "export_conversation": "conversations export",
    "end_run": "runs end",
    "get_agent": "agent",
    "get_agent_history": "history",
    "get_agent_process_info": "ps",
    "get_approval": "approvals",
    "get_attempt_diff": "task",
    "get_confinement": "doctor",
    "get_managed_agents": "ps",
    "get_network": "koi",
    "get_peer": "koi peers",
    "get_performance": "performance",
    "get_requested_changes": "worktrees changes",
    "get_task": "task",
    "get_task_artifact": "task",
    "get_task_graph": "graph",
    "get_task_logs": "task",
    "get_tool_call": "tools calls",
    "get_worktree_diff": "worktrees diff",
    "get_worktree_status": "worktrees",
    "import_records": "import",
    "integrate_worktree": "integrate",
    "list_approvals": "approvals",
    "list_closed_worktrees": "worktrees --all",
    "list_decided_approvals": "approvals --all",
    "list_events": "events",
    "list_turns": "conversations show",
    "list_newest_events": "events",
    "list_peers": "koi peers",
    "list_personalities": "personalities",
    "list_runs": "runs",
    "list_saved_views": "call list_saved_views",
    "list_sweeps": "runs sweeps",
    "list_tasks": "tasks",
    "list_tool_calls": "tools calls",
    "list_tool_permissions": "tools allow",
    "list_tool_servers": "tools servers",
    "list_tools": "tools",
    "prune_worktrees": "worktrees prune",
    "publish_personality": "personalities publish",
    "reassign_task": "assign",
    "registration_status": "call registration_status",
    "reject_many": "reject",
    "release_personality_name": "personalities release",
    "remove_dependency": "depend --remove",
    "resolve_worktree": "worktrees resolve",
    "request_changes": "request-changes",
    "restart_agent": "restart",
    "restore_agent": "agents restore",
    "retry_answer": "conversations retry",
    "retry_task": "retry",
    "save_persona": "personas save",
    "set_peer_permission": "koi allow",
    "set_tool_permission": "tools allow",
    "spawn_agent": "spawn",
    "update_agent": "grant",
    "update_agent_tool": "agent-tools edit",
    "update_context": "contexts edit",
    "update_conversation": "call update_conversation",
    "update_traits": "personalities set",
}
"""The commands that run an operation, where it declares none, or where another is meant."""

_Words = str | Callable[[re.Match[str]], str]
_PHRASES: tuple[tuple[re.Pattern[str], _Words], ...] = (
    (re.compile(r"create_worktree with name=.* and branch_name=.* \((.*) does both\)"), r"\1 does both"),
    (re.compile(r"\bcall with update=true\b"), "give --update"),
    (re.compile(r"\b(despite_gates|force|deleted)=true\b"), lambda found: f"--{found[1].replace('_', '-')}"),
    (re.compile(r"\bjoin_network\(first_contact_rid=…\)"), "`{program} koi join URL --rid RID`"),
    (re.compile(r"\bwith step=start\b"), "with `{program} worktrees resolve`"),
    (re.compile(r"\bGET /api/ops lists those you may call\b"), "docs/reference.md lists them"),
)
_SHELL_COMMAND = re.compile(r"`workbench (?!(?:demo|mcp|serve|token|worker)\b)(?=[a-z])")
"""A command of the shell that a notebook has too."""
ALONE = (r"(?<![\w/.'\"-])", r"(?![\w/'\"=:-]|\.\w)")
"""What is not before and after the name of an operation that a message means. A name in quotation marks, and one that
is a part of a path or the name of a field, was given by a person and stays."""
_QUOTED_OR_NAME = re.compile(rf"`([a-z]+(?:_[a-z]+)+)`|{ALONE[0]}([a-z]+(?:_[a-z]+)+){ALONE[1]}")


@cache
def commands() -> Mapping[str, str]:
    """The commands that run an operation."""
    return {**commands_of_operations(), **HAND_WRITTEN}


def in_commands(message: str, program: str = "workbench", known: Mapping[str, str] | None = None) -> str:
    """A message of an operation, with commands in place of the operations and arguments that it names.

    Args:
        known: the commands of operations; by default all.
    """
    names = commands() if known is None else known
    for pattern, words in _PHRASES:
        message = pattern.sub(words, message)
    message = message.replace("{program}", program)
    if program.startswith("%"):
        message = in_magics(message)
    return _QUOTED_OR_NAME.sub(lambda found: _command(found, program, names), message)


def in_magics(text: str) -> str:
    """A text about commands of the shell, with those of a notebook in their place."""
    return _SHELL_COMMAND.sub("`%workbench ", text)


def _command(found: re.Match[str], program: str, known: Mapping[str, str]) -> str:
    name = found[1] or found[2]
    command = known.get(name)
    return f"`{program} {command}`" if command else found[0]
