"""Plans: parses text to a checked list of tasks, or reports every problem with its line; and writes plans as text.

A plan is written as YAML (`yaml`) or as a Markdown checklist (`markdown`). Both are parsed to a draft, from which
`draft` makes a `Plan` if it has no problems. `diff` compares a new text with the current tasks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from workbench.errors import BadInput
from workbench.rules.tasks.plan import markdown, yaml
from workbench.rules.tasks.plan.diff import FieldChange, PlanDiff, compare, dead_ends, obstacles
from workbench.rules.tasks.plan.draft import Problems, checked
from workbench.rules.tasks.plan.model import (
    Defaults,
    Plan,
    PlannedTask,
    Ticked,
    digest,
    find_cycle,
    in_order,
    open_tasks,
    with_secrets,
    without_secrets,
)

__all__ = [
    "Defaults",
    "FieldChange",
    "Format",
    "Plan",
    "PlanDiff",
    "PlannedTask",
    "Ticked",
    "compare",
    "dead_ends",
    "digest",
    "find_cycle",
    "in_order",
    "obstacles",
    "parse",
    "rename",
    "with_secrets",
    "without_secrets",
    "write",
]

Format = Literal["yaml", "markdown"]


def parse(
    text: str,
    *,
    default_name: str = "plan",
    personas: Collection[str] | None = None,
    format: Format | Literal["auto"] = "auto",
) -> Plan:
    """Parse a plan; if `personas` is given, its tasks may use no others.

    Raises:
        BadInput: ``PLAN_INVALID``.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    is_markdown = markdown.looks_like(text) if format == "auto" else format == "markdown"
    problems = Problems()
    draft = markdown.read(text, problems) if is_markdown else yaml.read(text, problems)
    return checked(draft, problems, default_name, personas)


def write(plan: Plan, format: Format, *, completed: Collection[str] = ()) -> str:
    """Write a plan as text that parses to the same plan; in Markdown, `completed` tasks are ticked."""
    written = Plan(plan=plan.plan, tasks=open_tasks(plan), budget=plan.budget, workplace=plan.workplace)
    return markdown.write(written, completed) if format == "markdown" else yaml.write(written)


def rename(plan: Plan, name: str) -> Plan:
    """The same plan under another name.

    Raises:
        BadInput: ``PLAN_INVALID``.
    """
    problems = Problems()
    renamed = problems.validated(Plan, {**dict(plan), "plan": name}, 1)
    if renamed is None:
        raise BadInput("PLAN_INVALID", f"{name!r} is not a valid plan name: {problems.found[0]['reason']}.")
    return renamed
