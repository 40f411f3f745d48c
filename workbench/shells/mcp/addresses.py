"""The addresses of resources, and the operation that reads each.

The operation alone decides what is visible: what a caller may read by its address is what it may read with the tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

from workbench.errors import NotFound
from workbench.rules.wire.patch import patch_text

SCHEME = "workbench://"
PROFILES = "profile://"
"""The scheme of agents' profiles on a KOI network."""
JSON = "application/json"
JSON_SCHEMA = "application/schema+json"
NUMBERS = frozenset({"approval_id", "task_id"})
"""Arguments that are numbers."""

Result = Mapping[str, Any]
Items = Callable[[Result], Iterator[tuple[str, str]]]


@dataclass(frozen=True)
class ResourceKind:
    """Resources of one kind.

    Args:
        path: the address after the scheme, with the names of the operation's arguments in braces.
        operation: reads one of them.
        fixed: further arguments of the operation.
        text: makes the text of the resource from the operation's result.
        items: for a list, the addresses and the titles of what is in it, newest first.
        scheme: that of the address.
    """

    path: str
    operation: str
    title: str
    description: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    mime_type: str = JSON
    text: Callable[[Result], str] = lambda result: json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    items: Items = lambda result: iter(())
    scheme: str = SCHEME

    @property
    def address(self) -> str:
        """Its address, or the template (RFC 6570) of its addresses."""
        return self.scheme + self.path

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches the addresses."""
        return re.compile(self.scheme + re.sub(r"{(\w+)}", _group, self.path))

    @property
    def parameters(self) -> frozenset[str]:
        """The arguments of the operation that an address has."""
        return frozenset(self.pattern.groupindex)

    def arguments(self, uri: str) -> dict[str, Any] | None:
        """The operation's arguments for an address; None if it is an address of another kind."""
        match = self.pattern.fullmatch(uri)
        return None if match is None else {name: unquote(text) for name, text in match.groupdict().items()}


def _group(name: re.Match[str]) -> str:
    """Matches a value in a path; a number only as it is usually written, so that a resource has one address."""
    return rf"(?P<{name[1]}>{'[1-9][0-9]{0,18}' if name[1] in NUMBERS else '[^/?#]+'})"


@dataclass(frozen=True)
class ResourceAddress:
    """The address of a resource: its kind, and the values in its path."""

    kind: ResourceKind
    values: Mapping[str, str]

    @property
    def uri(self) -> str:
        """The one spelling that all spellings of the address share."""
        return self.kind.scheme + re.sub(r"{(\w+)}", lambda name: segment(self.values[name[1]]), self.kind.path)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the operation that reads it."""
        return {**self.kind.fixed, **self.values}


def _tasks(result: Result) -> Iterator[tuple[str, str]]:
    for task in result["tasks"]:
        yield f"{SCHEME}tasks/{task['id']}", f"Task {task['id']} ({task['status']}): {task['title']}"


def _contexts(result: Result) -> Iterator[tuple[str, str]]:
    for context in result["data"]:
        yield f"{SCHEME}contexts/{context['id']}", f"Context {context['sequence_number']}: {context['title']}"


def _plans(result: Result) -> Iterator[tuple[str, str]]:
    for plan in reversed(result["plans"]):
        progress = f"{plan['completed']} of {plan['tasks']} completed"
        yield f"{SCHEME}plans/{segment(plan['plan'])}", f"Plan {plan['plan']} ({progress})"


def _approvals(result: Result) -> Iterator[tuple[str, str]]:
    for approval in reversed(result["approvals"]):
        yield (
            f"{SCHEME}approvals/{approval['id']}",
            f"Approval {approval['id']}: {approval['kind']} of {approval['subject']}",
        )


def _diffs(result: Result) -> Iterator[tuple[str, str]]:
    for worktree in reversed(result["worktrees"]):
        name = worktree["name"]
        lines = f"+{worktree['added']} −{worktree['removed']}"
        yield f"{SCHEME}worktrees/{segment(name)}/diff", f"Changes of the worktree {name} ({lines})"


def _personalities(result: Result) -> Iterator[tuple[str, str]]:
    for personality in result["personalities"]:
        yield (
            f"{PROFILES}{segment(personality['name'])}",
            f"Profile of the agent {personality['name']}: {personality['description']}",
        )


def _schema(result: Result) -> str:
    return json.dumps(result["jsonSchema"], ensure_ascii=False)


def segment(text: object) -> str:
    """A value as a part of an address. What cannot be encoded is no name of anything, and becomes a question mark."""
    return quote(str(text), safe="", errors="replace")


LISTS = (
    ResourceKind(
        "approvals",
        "list_approvals",
        "Approvals",
        "The inbox: what waits for your approval.",
        items=_approvals,
    ),
    ResourceKind("plans", "list_plans", "Plans", "The plans and their progress.", items=_plans),
    ResourceKind(
        "worktrees",
        "get_worktree_status",
        "Worktrees",
        "The open worktrees: commits ahead and behind, changed files, conflicts, agents and tasks.",
        items=_diffs,
    ),
    ResourceKind(
        "tasks",
        "list_tasks",
        "Tasks",
        "The newest 100 tasks that are visible to you.",
        fixed={"sort": "newest"},
        items=_tasks,
    ),
    ResourceKind(
        "contexts",
        "read",
        "Contexts",
        "The newest 100 contexts that are visible to you.",
        fixed={"resource_type": "contexts", "limit": 100},
        items=_contexts,
    ),
    ResourceKind(
        "personalities",
        "list_personalities",
        "Personalities",
        "The agents of the KOI network: what they say about themselves, and their tools.",
        fixed={"limit": 100},
        items=_personalities,
    ),
    ResourceKind(
        "schemas/agent",
        "agent_get_schema",
        "JSON Schema of agent.yaml",
        "The form of the file agent.yaml of an agent definition.",
        fixed={"file": "agent.yaml"},
        mime_type=JSON_SCHEMA,
        text=_schema,
    ),
    ResourceKind(
        "schemas/front-matter",
        "agent_get_schema",
        "JSON Schema of front matter",
        "The form of the front matter of a rule or reference of an agent definition.",
        fixed={"file": "front-matter"},
        mime_type=JSON_SCHEMA,
        text=_schema,
    ),
)
SINGLE = (
    ResourceKind(
        "approvals/{approval_id}", "get_approval", "Approval", "A request for approval, the decision and its reason."
    ),
    ResourceKind(
        "plans/{plan}",
        "export_plan",
        "Plan",
        "A plan as a checklist, with its completed tasks ticked.",
        fixed={"format": "markdown", "tick": True},
        mime_type="text/markdown",
        text=lambda result: str(result["text"]),
    ),
    ResourceKind(
        "worktrees/{worktree_name}/diff",
        "get_worktree_diff",
        "Changes of a worktree",
        "What a worktree has committed since it forked from its target, as a unified diff.",
        mime_type="text/x-diff",
        text=lambda result: patch_text(result["files"]),
    ),
    ResourceKind("tasks/{task_id}", "get_task", "Task", "A task in full: text, state, dependencies, attempts, result."),
    ResourceKind("contexts/{context_id}", "get_context", "Context", "A context with its whole text."),
    ResourceKind(
        "{name}",
        "get_personality",
        "Profile",
        "The profile of an agent of the KOI network, in its latest version, and where it comes from.",
        scheme=PROFILES,
    ),
    ResourceKind(
        "{name}/{version}", "get_personality", "Version of a profile", "A version of a profile.", scheme=PROFILES
    ),
)


def locate(uri: str) -> ResourceAddress:
    """What an address stands for.

    Raises:
        NotFound: ``RESOURCE_NOT_FOUND``.
    """
    for kind in (*LISTS, *SINGLE):
        if (values := kind.arguments(uri)) is not None:
            return ResourceAddress(kind, values)
    raise NotFound(
        "RESOURCE_NOT_FOUND",
        f"There is no resource {uri!r}. resources/list and resources/templates/list name their addresses.",
    )
